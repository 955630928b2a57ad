//! Tests.

mod render_nginx;
