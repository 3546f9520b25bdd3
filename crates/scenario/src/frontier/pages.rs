//! A frontier as text and as a page.
