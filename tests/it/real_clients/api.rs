//! The Site API over the edge, by the same scenarios as against a process of its own.

use super::{on_private, on_public, python};
use crate::runtime_api::{curl, deletion, links, listing, quota, token_matrix, trees, uploads, urls};
use crate::support::{MASTER, with_pods};

#[test]
fn real_client_01_version_selector_of_a_named_path() {
    on_public("real_client_01", listing::named_path);
}

#[test]
fn real_client_02_version_selector_of_the_empty_path() {
    on_private("real_client_02", listing::empty_path);
}

/// The same requests as the workflow's own library sends them.
#[test]
fn real_client_01_02_03_04_a_documentation_workflow() {
    on_public("real_client_01_02_03_04", async |site| {
        for folder in ["proj", ""] {
            let said = python(site, "publish.py", &[&site.page_url(""), MASTER, folder]).await.well();
            assert!(said.contains("published"), "{said}");
            assert_eq!(site.delete("files/").await.status, 200);
        }
    });
}

#[test]
fn real_client_03_create_returns_200() {
    on_private("real_client_03", uploads::create_returns_200);
}

#[test]
fn real_client_04_the_forms_file_name_is_ignored() {
    on_public("real_client_04", curl::file_name_of_a_form);
}

#[test]
fn real_client_05_encoded_path_upload() {
    on_private("real_client_05", curl::encoded_path);
}

#[test]
fn real_client_06_every_outcome_is_json() {
    on_private("real_client_06", uploads::every_outcome_is_json);
}

#[test]
fn real_client_07_backups_are_made_when_asked_for() {
    on_private("real_client_07", uploads::backups);
}

#[test]
fn real_client_08_three_thousand_entries_are_not_cut() {
    on_private("real_client_08", listing::three_thousand_entries);
}

#[test]
fn real_client_09_a_folder_goes_with_all_that_is_in_it() {
    on_private("real_client_09", deletion::folder_deletion);
}

#[test]
fn real_client_09_freed_space_is_usable_at_once() {
    on_private("real_client_09", async |site| {
        quota::fill_up(site, 1 << 20).await;
        quota::freed_space(site).await;
    });
}

#[test]
fn real_client_10_the_whole_site_is_emptied_and_goes_on() {
    on_private("real_client_10", deletion::emptied_site);
}

#[test]
fn real_client_11_a_link_in_a_form_that_is_json() {
    on_private("real_client_11", curl::link_in_a_form);
}

#[test]
fn real_client_12_targets_are_relative_to_the_sites_root() {
    on_private("real_client_12", links::link_targets);
}

#[test]
fn real_client_13_pointing_a_link_elsewhere() {
    on_private("real_client_13", links::pointing_elsewhere);
}

#[test]
fn real_client_14_links_are_folders_in_listings() {
    on_private("real_client_14", links::links_in_listings);
}

#[test]
fn real_client_16_public_listing() {
    on_public("real_client_16", listing::public_listing);
    on_private("real_client_16", listing::private_listing);
}

#[test]
fn real_client_17_a_folder_by_its_placeholder() {
    on_private("real_client_17", uploads::placeholder);
}

#[test]
fn real_client_19_a_docs_tree_is_uploaded_while_it_is_read() {
    on_public("real_client_19", trees::docs_tree);
}

#[test]
fn real_client_20_a_preview_comes_and_goes() {
    on_public("real_client_20", deletion::preview);
}

#[test]
fn real_client_21_token_matrix() {
    with_pods("real_client_21", async |pods| {
        let (site, other) = (pods.private().await, pods.public().await);
        let servers = token_matrix::Servers { api: &site, dav: &site, s3: &site };
        token_matrix::token_matrix(&servers, &other).await;
    });
}

#[test]
fn real_client_22_spellings_of_one_place() {
    on_private("real_client_22", listing::spellings);
}

#[test]
fn real_client_26_signed_url() {
    on_private("real_client_26", urls::signed_url);
}
