//! What a caller asks of the list, and which Sites fit.

use crate::domain::people::{self, Person, Standing};
use crate::domain::site::{Site, SiteType};

/// The orders of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SortBy {
    /// By public path: space, then name.
    #[default]
    Name,
    /// By space alone.
    Space,
    /// By owner.
    Owner,
    /// Private first.
    Type,
    /// By day of creation.
    RegisteredDate,
    /// By day of retention; those without come last.
    RetentionDate,
    /// By day of the last edit.
    UpdatedDate,
    /// By size of the volume.
    Quota,
    /// By the pods' state.
    Phase,
}

impl SortBy {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Name,
        Self::Space,
        Self::Owner,
        Self::Type,
        Self::RegisteredDate,
        Self::RetentionDate,
        Self::UpdatedDate,
        Self::Quota,
        Self::Phase,
    ];

    /// The word of the API.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Space => "space",
            Self::Owner => "owner",
            Self::Type => "type",
            Self::RegisteredDate => "registered_date",
            Self::RetentionDate => "retention_date",
            Self::UpdatedDate => "updated_date",
            Self::Quota => "quota",
            Self::Phase => "phase",
        }
    }

    /// The order of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.word() == word)
    }

    /// Where a Site stands in this order: a text, compared byte by byte. Ties are broken by the id.
    #[must_use]
    pub fn key(self, site: &Site) -> String {
        let configuration = &site.spec.configuration;
        // After every day that there is.
        let day = |day: &Option<String>| day.clone().unwrap_or_else(|| "~".to_owned());
        match self {
            Self::Name => {
                let folded = |text: &Option<String>| text.as_deref().unwrap_or_default().to_lowercase();
                // A slash sorts before every character of a segment, as a separator must.
                format!("{}/{}", folded(&configuration.space), folded(&site.spec.name))
            }
            Self::Space => configuration.space.as_deref().unwrap_or_default().to_lowercase(),
            Self::Owner => site.spec.owner.to_lowercase(),
            Self::Type => match site.spec.site_type {
                SiteType::Private => "private".to_owned(),
                SiteType::Public => "public".to_owned(),
            },
            Self::RegisteredDate => day(&configuration.registered_date),
            Self::RetentionDate => day(&configuration.retention_date),
            Self::UpdatedDate => day(&configuration.updated_date),
            // As many digits as the largest number has.
            Self::Quota => format!("{:010}", configuration.quota.unwrap_or_default()),
            Self::Phase => site
                .status
                .as_ref()
                .and_then(|status| status.phase)
                .map_or_else(|| "pending".to_owned(), |phase| format!("{phase:?}").to_lowercase()),
        }
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Viewer {
    /// A platform administrator: sees every Site.
    Everything,
    /// Somebody who is logged in.
    Person(Person),
    /// Nobody is logged in.
    Anonymous,
}

impl Viewer {
    /// Whether a Site is theirs to see.
    #[must_use]
    pub fn sees(&self, site: &Site) -> bool {
        let person = match self {
            Self::Everything => return true,
            Self::Person(person) => Some(person),
            Self::Anonymous => None,
        };
        people::standing(site, person) >= Standing::Viewer
    }
}

/// Which Sites, in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Query {
    /// Exact name.
    pub name: Option<String>,
    /// Exact space.
    pub space: Option<String>,
    /// Exact owner.
    pub owner: Option<String>,
    /// Exact type.
    pub site_type: Option<SiteType>,
    /// Part of the path, id, owner or description, in any case.
    pub text: Option<String>,
    /// No archived Sites.
    pub enabled_only: bool,
    /// The order.
    pub sort_by: SortBy,
    /// From the end.
    pub descending: bool,
}

impl Query {
    /// Whether a Site fits, whoever asks. `text` is what [`searched`] made of it.
    #[must_use]
    pub fn fits(&self, site: &Site, text: &str) -> bool {
        let same =
            |wanted: &Option<String>, is: Option<&str>| wanted.as_deref().is_none_or(|wanted| is == Some(wanted));
        same(&self.name, site.spec.name.as_deref())
            && same(&self.space, site.spec.configuration.space.as_deref())
            && same(&self.owner, Some(&site.spec.owner))
            && self.site_type.is_none_or(|wanted| wanted == site.spec.site_type)
            && (!self.enabled_only || site.enabled())
            && self.text.as_ref().is_none_or(|part| text.contains(&part.to_lowercase()))
    }
}

/// The text that a search looks into, lower case.
#[must_use]
pub fn searched(site: &Site) -> String {
    let configuration = &site.spec.configuration;
    let parts = [
        configuration.space.as_deref().unwrap_or_default(),
        "/",
        site.spec.name.as_deref().unwrap_or_default(),
        "\n",
        &site.spec.id,
        "\n",
        &site.spec.owner,
        "\n",
        configuration.description.as_deref().unwrap_or_default(),
    ];
    parts.concat().to_lowercase()
}
