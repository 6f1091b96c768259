//! Pages as pictures: who gets them, of which bytes they are, and what happens where there is none.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use image::GenericImageView as _;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::browsing::DeskWorker;
use super::desk::{PageAnswer, WebConsole, invoice, send};
use crate::support::documents;
use crate::support::world::{SOON, until};

/// A document of acme that was read from these bytes, and where its first page's picture is.
async fn read_document(desk: &WebConsole, bytes: &[u8]) -> String {
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    desk.store_original(document, bytes).await;
    format!("/ingestions/{ingestion}/pages/1/picture")
}

async fn get_bytes(desk: &WebConsole, path: &str) -> (StatusCode, String, Vec<u8>) {
    let answer = desk.call(Method::GET, path, "viewer").send().await.unwrap();
    let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
    (answer.status(), kind, answer.bytes().await.unwrap().to_vec())
}

fn assert_refused(answer: &PageAnswer, words: &str) {
    assert_eq!(answer.status, StatusCode::CONFLICT, "{answer:?}");
    assert!(answer.json()["detail"].as_str().unwrap().contains(words), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_shows_the_page_and_is_not_sent_twice() {
    let desk = WebConsole::open().await;
    let path = read_document(&desk, &documents::invoice("A-1")).await;
    let (status, kind, bytes) = get_bytes(&desk, &path).await;
    assert_eq!(status, StatusCode::OK);
    let picture = image::load_from_memory(&bytes).unwrap();
    assert!(kind == "image/png" || kind == "image/jpeg", "{kind}");
    let (width, height) = picture.dimensions();
    let ratio = f64::from(height) / f64::from(width);
    assert!(height <= 2000 && (ratio - 842.0 / 595.0).abs() < 0.01, "{width} × {height}");
    // Where the total stands there is ink, and below it there is none.
    let ink = |top: u32| {
        let rows = (top * height / 842)..((top + 14) * height / 842);
        let dark = |y| (0..width).filter(|x| picture.get_pixel(*x, y)[0] < 128).count();
        rows.map(dark).sum::<usize>()
    };
    assert!(ink(320) > 100 && ink(600) == 0, "{} {}", ink(320), ink(600));

    let first = desk.get(&path, "viewer").await;
    assert_eq!(first.header("cache-control"), "private, no-cache");
    assert_eq!(first.header("x-content-type-options"), "nosniff");
    let known =
        desk.call(Method::GET, &path, "viewer").header("if-none-match", first.header("etag"));
    assert_eq!(send(known).await.status, StatusCode::NOT_MODIFIED);
    let browser = desk.browser("viewer").await;
    assert_eq!(browser.get(&path).await.status, StatusCode::OK, "pages show the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_shown_in_its_colours_and_one_without_any_in_grey() {
    let desk = WebConsole::open().await;
    let stamped = documents::drawn_invoice_carrying("0.8 0.1 0.1 rg 60 500 120 60 re f", &[]);
    let path = read_document(&desk, &stamped).await;
    let (status, kind, bytes) = get_bytes(&desk, &path).await;
    assert_eq!((status, kind.as_str()), (StatusCode::OK, "image/jpeg"));
    let picture = image::load_from_memory(&bytes).unwrap();
    assert!(picture.color().has_color() && bytes.len() < 400_000, "{} bytes", bytes.len());
    let picture = picture.into_rgb8();
    let at =
        |x: u32, y: u32| picture.get_pixel(x * picture.width() / 595, y * picture.height() / 842).0;
    // The stamp lies 500 to 560 points above the lower edge.
    let [red, green, blue] = at(120, 842 - 530);
    assert!(red > 180 && green < 60 && blue < 60, "{red} {green} {blue}");
    assert!(at(300, 700).iter().all(|value| *value > 245), "paper stays white");
    let plain = read_document(&desk, &documents::invoice("G-1")).await;
    let (_, _, bytes) = get_bytes(&desk, &plain).await;
    assert!(!image::load_from_memory(&bytes).unwrap().color().has_color());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_for_those_who_see_the_document_and_of_pages_that_it_has() {
    let desk = WebConsole::open().await;
    let path = read_document(&desk, &documents::invoice("A-1")).await;
    assert_eq!(desk.get(&path, "acme").await.status, StatusCode::OK);
    assert_eq!(desk.get(&path, "rival").await.status, StatusCode::NOT_FOUND);
    let rival = desk.browser("rival").await;
    assert_eq!(rival.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(desk.get(&path, "nobody").await.status, StatusCode::UNAUTHORIZED);
    for page in ["0", "2", "4294967295", "4294967296", "-1", "x", "%00"] {
        let other = path.replace("/pages/1/", &format!("/pages/{page}/"));
        assert_eq!(desk.get(&other, "viewer").await.status, StatusCode::NOT_FOUND, "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_picture_is_shown_of_other_bytes_than_were_read() {
    let desk = WebConsole::open().await;
    let path = read_document(&desk, &documents::invoice("A-1")).await;
    let sql = "SELECT file_path FROM document";
    let original = desk.folder.path().join("store").join(desk.scalar(sql).await);
    std::fs::write(&original, documents::invoice("OTHER")).unwrap();
    assert_refused(&desk.get(&path, "viewer").await, "another file now");
    std::fs::remove_file(&original).unwrap();
    assert_refused(&desk.get(&path, "viewer").await, "no longer where it was");
    std::fs::write(&original, documents::invoice("A-1")).unwrap();
    assert_eq!(desk.get(&path, "viewer").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_drawn_is_refused_with_its_reason_and_harms_nobody() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let locked = std::fs::read(root.join("samples/encrypted.pdf")).unwrap();
    let mut cut = documents::invoice("A-1");
    cut.truncate(40);
    let desk = WebConsole::open().await;
    for (bytes, words) in [
        (locked.as_slice(), "none of store.passwords opens it"),
        (cut.as_slice(), "cannot be drawn"),
        (b"".as_slice(), "cannot be drawn"),
        (b"\0\x01 no document".as_slice(), "cannot be drawn"),
    ] {
        let path = read_document(&desk, bytes).await;
        assert_refused(&desk.get(&path, "viewer").await, words);
    }
    let path = read_document(&desk, &documents::invoice("A-2")).await;
    assert_eq!(desk.get(&path, "viewer").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_could_not_be_drawn_is_not_looked_at_again_by_whoever_asks_next() {
    let desk = WebConsole::open().await;
    let path = read_document(&desk, b"no document\0").await;
    assert_refused(&desk.get(&path, "viewer").await, "cannot be drawn");
    let sql = "SELECT file_path FROM document";
    std::fs::remove_file(desk.folder.path().join("store").join(desk.scalar(sql).await)).unwrap();
    assert_refused(&desk.get(&path, "acme").await, "cannot be drawn");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_password_opens_pictures_for_that_tenant_alone() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let locked = std::fs::read(root.join("samples/encrypted.pdf")).unwrap();
    let password = docmill_core::config::DocumentPassword {
        tenant: Some("acme".to_owned()),
        password: crate::passwords::PASSWORD.to_owned().into(),
    };
    let desk = WebConsole::open_with(|config| {
        config.web.tokens = super::desk::tokens();
        config.store.passwords = vec![password];
    })
    .await;
    let own = read_document(&desk, &locked).await;
    assert_eq!(desk.get(&own, "acme").await.status, StatusCode::OK);
    let (document, ingestion) = desk.refused("rival", &invoice(21.0)).await;
    desk.store_original(document, &locked).await;
    let theirs = format!("/ingestions/{ingestion}/pages/1/picture");
    assert_refused(&desk.get(&theirs, "rival").await, "none of store.passwords opens it");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_pictures_are_switched_off_no_page_asks_for_one() {
    let desk = WebConsole::open_with(|config| {
        config.web.tokens = super::desk::tokens();
        config.web.page_pictures = false;
    })
    .await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    desk.store_original(document, &documents::invoice("A-1")).await;
    super::api::store_transcript(&desk, ingestion).await;
    let picture = format!("/ingestions/{ingestion}/pages/1/picture");
    assert_refused(&desk.get(&picture, "viewer").await, "web.page_pictures");
    let browser = desk.browser("viewer").await;
    for path in [format!("/reviews/{document}"), format!("/ingestions/{ingestion}/pages/1")] {
        let shown = browser.get(&path).await;
        assert_eq!(shown.status, StatusCode::OK);
        assert!(
            shown.body.contains("ZIMMER") && !shown.body.contains("/picture\""),
            "{}",
            shown.body
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_shown_beside_its_lines_and_the_values_that_were_found_on_it() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    desk.store_original(document, &documents::invoice("A-1")).await;
    super::api::store_transcript(&desk, ingestion).await;
    desk.execute(
        r#"UPDATE ingestion SET grounded = '[{"field": "supplier_name", "page": 1, "confidence": 1,
            "box": {"x": 1, "y": 1, "w": 9, "h": 9}}]'"#,
    )
    .await;
    let browser = desk.browser("viewer").await;
    let shown = browser.get(&format!("/ingestions/{ingestion}")).await.body;
    let link = format!("/ingestions/{ingestion}/pages/1#mark-0");
    assert!(shown.contains(&format!("href=\"{link}\"")), "{shown}");
    let page = browser.get(&format!("/ingestions/{ingestion}/pages/1")).await.body;
    for part in [
        "id=\"mark-0\"",
        "id=\"line-0\"",
        "ZIMMER",
        "Supplier name</a>: <bdi>Acme</bdi>",
        "viewBox=\"0 0 100.00 100.00\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let missing = browser.get(&format!("/ingestions/{ingestion}/pages/2")).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
}

/// Dark pixels of a picture, and how many of them lie in a box of the page's words, a little widened.
fn count_ink(picture: &image::GrayImage, page: &Value) -> (usize, usize) {
    let number = |value: &Value| value.as_f64().unwrap();
    let scale = |side: &str, pixels: u32| f64::from(pixels) / number(&page[side]);
    let (across, down) = (scale("width", picture.width()), scale("height", picture.height()));
    let words =
        page["lines"].as_array().unwrap().iter().flat_map(|line| line["words"].as_array().unwrap());
    let boxes: Vec<[f64; 4]> = words
        .map(|word| {
            let side = |name: &str| number(&word["box"][name]);
            let air = side("h") * 0.2;
            let (left, top) = (side("x") - air, side("y") - air);
            let (right, bottom) = (side("x") + side("w") + air, side("y") + side("h") + air);
            [left * across, top * down, right * across, bottom * down]
        })
        .collect();
    let is_inside = |x: u32, y: u32| {
        let (x, y) = (f64::from(x), f64::from(y));
        boxes.iter().any(|[left, top, right, bottom]| {
            x >= *left && x <= *right && y >= *top && y <= *bottom
        })
    };
    let dark = picture.enumerate_pixels().filter(|(.., grey)| grey.0[0] < 100);
    dark.fold((0, 0), |(all, inside), (x, y, _)| (all + 1, inside + usize::from(is_inside(x, y))))
}

/// A picture turned by some degrees, as paper lies crooked on the glass.
fn turn_a_little(picture: &image::GrayImage, degrees: f64) -> image::GrayImage {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let (width, height) = picture.dimensions();
    let middle = (f64::from(width) / 2.0, f64::from(height) / 2.0);
    image::GrayImage::from_fn(width, height, |x, y| {
        let (x, y) = (f64::from(x) - middle.0, f64::from(y) - middle.1);
        let (from_x, from_y) = (x * cos - y * sin + middle.0, x * sin + y * cos + middle.1);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pixels")]
        let found = (from_x >= 0.0 && from_y >= 0.0)
            .then(|| picture.get_pixel_checked(from_x as u32, from_y as u32))
            .flatten();
        found.copied().unwrap_or(image::Luma([255]))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn boxes_of_what_was_read_lie_on_the_ink_of_the_picture_however_the_page_was_scanned() {
    let desk = WebConsole::open().await;
    let _worker = DeskWorker::start(&desk);
    let upright = image::load_from_memory(&documents::scan(documents::invoice("B-1"), 200.0));
    let upright = upright.unwrap().to_luma8();
    let png = |picture: &image::GrayImage| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        bytes.into_inner()
    };
    let tinted = image::DynamicImage::ImageLuma8(turn_a_little(&upright, 3.0)).into_rgb8();
    let tinted = image::RgbImage::from_fn(tinted.width(), tinted.height(), |x, y| {
        let image::Rgb([red, green, blue]) = *tinted.get_pixel(x, y);
        image::Rgb([red, green, blue / 4 * 3])
    });
    let mut yellow = std::io::Cursor::new(Vec::new());
    tinted.write_to(&mut yellow, image::ImageFormat::Png).unwrap();
    let cases = [
        ("yellow-and-crooked.png", yellow.into_inner()),
        ("native.pdf", documents::invoice("B-2")),
        ("upright.png", png(&upright)),
        ("crooked.png", png(&turn_a_little(&upright, 3.0))),
        ("upside-down.png", png(&image::imageops::rotate180(&upright))),
        ("lying.png", png(&image::imageops::rotate90(&upright))),
    ];
    for (name, bytes) in cases {
        let path = format!("/documents?name={name}&kind=invoice");
        let answer = send(desk.call(Method::POST, &path, "producer").body(bytes)).await;
        let id = answer.json()["document_id"].as_str().unwrap().to_owned();
        let ended = format!(
            "SELECT count(*) FROM ingestion WHERE document_id = '{id}' AND status <> 'in-progress'"
        );
        until(SOON, || async { desk.scalar(&ended).await == "1" }).await;
        let page = desk.get(&format!("/ingestions/{id}/pages/1"), "viewer").await.json();
        let path = format!("/ingestions/{id}/pages/1/picture");
        let (mut status, _, mut bytes) = get_bytes(&desk, &path).await;
        for _ in 0..2 {
            if status != StatusCode::SERVICE_UNAVAILABLE {
                break;
            }
            // A busy machine did not draw it in time.
            (status, _, bytes) = get_bytes(&desk, &path).await;
        }
        assert_eq!(status, StatusCode::OK, "{name}");
        let picture = image::load_from_memory(&bytes).unwrap();
        assert_eq!(picture.color().has_color(), name.starts_with("yellow"), "{name}");
        let picture = picture.to_luma8();
        let (all, inside) = count_ink(&picture, &page);
        assert!(all > 5000 && inside * 100 > all * 93, "{name}: {inside} of {all}");
    }
}
