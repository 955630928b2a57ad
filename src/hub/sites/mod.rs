//! Sites as the Hub finds, shows and changes them; the API and the pages call the same functions.
//!
//! | module | owns |
//! |---|---|
//! | [`address`] | the two ways to name a Site in a path |
//! | [`fits`] | whether its objects have a size that the API server takes |
//! | [`find`] | from a name to the Site, for those who may know of it |
//! | [`pods`] | its pods and the end of their logs |
//! | [`master_token`] | the one credential whose home is the Site |
//! | [`view`] | what is shown of a Site |
//! | [`mod@write`] | creating, editing and deleting, without losing anybody's edit |
//! | [`actions`] | toggle, upgrade, restart, retention |

pub mod actions;
pub mod address;
pub mod find;
pub mod fits;
pub mod master_token;
pub mod pods;
pub mod view;
pub mod write;
