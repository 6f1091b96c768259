//! The pages of `docmill web` and its interface for programs, over real HTTP and a real Postgres.

mod api;
mod attacks;
mod browsing;
mod choosing;
mod client_example;
mod clients;
mod companies;
mod desk;
mod documents;
mod floods;
mod keystrokes;
mod kinds;
mod operating;
mod people;
mod pictures;
mod plans;
mod proxy;
mod references;
mod reviewing;
mod sharing;
mod tasks;
mod uploads;
mod views;
