//! The ten applications in Python, the language of the published ones: the same parameters as the built-in functions
//! of the same name, with the packages that real functions import.

/// A function in Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonSample {
    /// Name of the built-in function that does the same.
    pub name: &'static str,
    /// Packages that have to be installed, as PyPI calls them.
    pub packages: &'static [&'static str],
    /// The code of the action.
    pub source: &'static str,
}

macro_rules! sample {
    ($name:literal, $file:literal, $packages:expr) => {
        PythonSample {
            name: $name,
            packages: &$packages,
            source: include_str!(concat!("python_samples/", $file)),
        }
    };
}

const ALL: &[PythonSample] = &[
    sample!("arithmetic", "arithmetic.py", []),
    sample!("dna-visualisation", "dna_visualisation.py", ["squiggle"]),
    sample!("dynamic-html", "dynamic_html.py", ["jinja2"]),
    sample!("email", "email.py", []),
    sample!("gradient-descent", "gradient_descent.py", ["numpy"]),
    sample!("image-recognition", "image_recognition.py", ["numpy", "onnx", "onnxruntime"]),
    sample!("image-resize", "image_resize.py", ["pillow"]),
    sample!("merge-sort", "merge_sort.py", []),
    sample!("nearest-neighbours", "nearest_neighbours.py", ["numpy"]),
    sample!("video-encode", "video_encode.py", ["imageio-ffmpeg"]),
];

/// All samples, in order of their names.
pub fn python_samples() -> &'static [PythonSample] {
    ALL
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::builtins;

    #[test]
    fn every_published_application_has_a_sample_with_its_input() {
        let published = builtins().iter().filter(|builtin| builtin.published_as.is_some());
        let names: Vec<&str> = published.clone().map(|builtin| builtin.name).collect();
        let samples: Vec<&str> = ALL.iter().map(|sample| sample.name).collect();
        assert_eq!(samples, names);
        for (builtin, sample) in published.zip(ALL) {
            let input = builtin.input.expect("the ten have an input");
            let read = format!("parameters.get(\"{}\", ", input.parameter);
            assert!(sample.source.contains(&read), "{} does not read {read}", sample.name);
        }
    }
}
