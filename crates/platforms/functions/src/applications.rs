//! The built-in functions, one file each.
//!
//! Ten of them follow the applications of FaaSRM's OpenWhisk experiment: what they do, the size their users reserve
//! and how many threads a call uses are published; the code is our own. Every result depends on the parameters
//! alone, so that a wrong answer of a platform cannot hide.

mod arithmetic;
mod autoscale;
mod dna_visualisation;
mod dynamic_html;
mod email;
mod fault;
mod gradient_descent;
mod greeting;
mod image_recognition;
mod image_resize;
mod merge_sort;
mod nearest_neighbours;
mod service;
mod splitting;
mod video_encode;
mod waiting;

use crate::builtin::Builtin;

/// In order of names.
pub(crate) const ALL: &[Builtin] = &[
    arithmetic::ARITHMETIC,
    autoscale::AUTOSCALE,
    dna_visualisation::DNA_VISUALISATION,
    dynamic_html::DYNAMIC_HTML,
    greeting::ECHO,
    email::EMAIL,
    fault::FAULT,
    gradient_descent::GRADIENT_DESCENT,
    greeting::HELLO,
    image_recognition::IMAGE_RECOGNITION,
    image_resize::IMAGE_RESIZE,
    merge_sort::MERGE_SORT,
    nearest_neighbours::NEAREST_NEIGHBOURS,
    service::SERVICE,
    video_encode::VIDEO_ENCODE,
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_unique_and_in_order() {
        let names: Vec<&str> = ALL.iter().map(|builtin| builtin.name).collect();
        assert!(names.is_sorted() && names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }

    #[test]
    fn the_ten_applications_have_their_published_sizes_and_threads() {
        let published = [
            ("alu", 1000, 128, 16),
            ("dh", 2000, 128, 8),
            ("dv", 2000, 384, 4),
            ("eg", 1000, 64, 2),
            ("gd", 1000, 256, 2),
            ("ip", 2000, 256, 2),
            ("ir", 2000, 384, 1),
            ("knn", 2000, 256, 6),
            ("ms", 1000, 128, 6),
            ("vp", 2000, 384, 1),
        ];
        let ours = ALL.iter().filter_map(|builtin| {
            let size = builtin.reservation;
            Some((builtin.published_as?, size.cpu.get(), size.memory.get(), builtin.threads.max(1)))
        });
        let mut ours: Vec<_> = ours.collect();
        ours.sort_unstable();
        assert_eq!(ours, published);
    }

    #[test]
    fn the_answer_does_not_depend_on_the_number_of_threads() {
        for builtin in ALL.iter().filter(|builtin| builtin.threads > 0) {
            let input = builtin.input.expect("what uses threads has an input");
            let size = (input.default / 50).max(1);
            let answers: Vec<_> = [1, 2, 7]
                .map(|threads| builtin.run(&json!({ input.parameter: size, "threads": threads })))
                .into_iter()
                .collect();
            assert!(answers[0].is_ok(), "{}: {:?}", builtin.name, answers[0]);
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{}", builtin.name);
        }
    }

    #[test]
    fn the_page_lists_every_function_with_its_input_and_size() {
        let page = include_str!("../../../../docs/reference/functions.md");
        for builtin in ALL {
            let row = format!("| `{}` |", builtin.name);
            let row = page.lines().find(|line| line.starts_with(&row));
            let row = row.unwrap_or_else(|| panic!("{} is missing", builtin.name));
            let cores = builtin.reservation.cpu.cores();
            let plural = if cores == 1.0 { "" } else { "s" };
            let size =
                format!("| {cores} core{plural}, {} MiB |", builtin.reservation.memory.get());
            assert!(row.contains(&size), "{}: {size}", builtin.name);
            let input =
                builtin.input.map(|input| format!("| `{}`, {} |", input.parameter, input.default));
            assert!(input.is_none_or(|input| row.contains(&input)), "{}", builtin.name);
        }
    }

    #[test]
    fn a_size_out_of_range_is_refused_by_all() {
        for builtin in ALL {
            let Some(input) = builtin.input else { continue };
            assert!(builtin.run(&json!({ input.parameter: 0 })).is_err(), "{}", builtin.name);
            let too_much = u64::from(input.most) + 1;
            assert!(
                builtin.run(&json!({ input.parameter: too_much })).is_err(),
                "{}",
                builtin.name
            );
        }
    }
}
