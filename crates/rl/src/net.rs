//! Small dense networks: forward, backward and Adam on flat `f32` slices.
//!
//! Written by hand because the networks here are tiny: measured against four tensor libraries the plain
//! loops were 7 to 23 times faster per update and 10 to 100 times per decision. This module is the only
//! one that knows how a network is computed, so that another back end has one place to go.
//!
//! Layout: one flat vector of parameters per network; a weight is stored `inputs x outputs` so that one
//! input's weights lie together, with outputs padded to whole vector registers. The padding is zero and
//! stays zero: its gradient is.

mod adam;
mod elementary;
#[cfg(target_arch = "x86_64")]
mod flip;
mod initial;
pub(crate) mod kernels;

pub(crate) use adam::clip_factor;
pub use adam::{Adam, AdamSettings};
pub use elementary::{exp, ln, tanh};
pub use initial::Initial;

use kernels::{
    padded, product, product_of_columns, product_plus, sum_of_rows, tanh_all, through_tanh,
    transpose,
};
use serde::{Deserialize, Serialize};
use windfall_core::Seed;

/// What hidden units do with their sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// Hyperbolic tangent.
    Tanh,
    /// The sum if it is positive, else zero.
    Relu,
}

/// The shape of a network: `inputs - hidden... - outputs`, linear at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Numbers that go in.
    pub inputs: usize,
    /// Units of each hidden layer.
    pub hidden: Vec<usize>,
    /// Numbers that come out.
    pub outputs: usize,
    /// Of the hidden units.
    pub activation: Activation,
}

/// One dense layer, as places in the flat vector.
#[derive(Clone, Debug)]
struct Layer {
    /// Inputs and outputs as the user counts them.
    inputs: usize,
    outputs: usize,
    /// Inputs and outputs as stored.
    depth: usize,
    width: usize,
    /// Where the weight begins; the bias follows it.
    start: usize,
}

impl Layer {
    fn weight<'a>(&self, parameters: &'a [f32]) -> &'a [f32] {
        &parameters[self.start..self.start + self.depth * self.width]
    }

    fn bias<'a>(&self, parameters: &'a [f32]) -> &'a [f32] {
        let start = self.start + self.depth * self.width;
        &parameters[start..start + self.width]
    }

    fn end(&self) -> usize {
        self.start + (self.depth + 1) * self.width
    }
}

/// A multi-layer perceptron.
#[derive(Clone, Debug)]
pub struct Mlp {
    shape: Shape,
    layers: Vec<Layer>,
    parameters: Vec<f32>,
}

/// What a pass through a network leaves behind, and room for the gradients coming back.
///
/// Allocated once for the largest batch; passes write into it.
#[derive(Clone, Debug)]
pub struct Activations {
    /// Results of each layer, row after row, padded.
    results: Vec<Vec<f32>>,
    /// Derivatives of the loss by those results.
    deltas: Vec<Vec<f32>>,
    transposed: Vec<f32>,
    outputs: usize,
    batch: usize,
}

impl Activations {
    /// The outputs for one row of the batch.
    pub fn output(&self, row: usize) -> &[f32] {
        let last = self.results.last().expect("a network has a layer");
        let width = padded(self.outputs);
        &last[row * width..row * width + self.outputs]
    }

    /// The derivatives of the loss by the outputs of one row, to be written before a backward pass.
    pub fn output_delta(&mut self, row: usize) -> &mut [f32] {
        let last = self.deltas.last_mut().expect("a network has a layer");
        let width = padded(self.outputs);
        &mut last[row * width..row * width + self.outputs]
    }
}

impl Mlp {
    /// A network of this shape whose weights follow `initial` and `seed`.
    pub fn new(shape: Shape, initial: Initial, seed: Seed) -> Self {
        let mut layers = Vec::new();
        let (mut inputs, mut depth, mut start) = (shape.inputs, shape.inputs, 0);
        for &outputs in shape.hidden.iter().chain([&shape.outputs]) {
            let layer = Layer { inputs, outputs, depth, width: padded(outputs), start };
            (inputs, depth, start) = (outputs, layer.width, layer.end());
            layers.push(layer);
        }
        let mut network = Self { shape, layers, parameters: vec![0.0; start] };
        for index in 0..network.layers.len() {
            let is_last = index + 1 == network.layers.len();
            let layer = &network.layers[index];
            let stream = seed.member(index as u64);
            let (weight, bias) = initial.draw(layer.inputs, layer.outputs, is_last, stream);
            network.set_layer(index, &weight, &bias);
        }
        network
    }

    /// Its shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// All parameters, padding included.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// All parameters, to be changed by an optimiser. Padding must stay zero.
    pub fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// Room for batches of up to `rows` rows.
    pub fn activations(&self, rows: usize) -> Activations {
        let room = || self.layers.iter().map(|layer| vec![0.0; rows * layer.width]).collect();
        let largest = self.layers.iter().map(|layer| layer.depth * layer.width).max();
        Activations {
            results: room(),
            deltas: room(),
            transposed: vec![0.0; largest.unwrap_or(0)],
            outputs: self.shape.outputs,
            batch: 0,
        }
    }

    /// Computes the outputs of every row of `input`. Allocates nothing.
    ///
    /// # Panics
    ///
    /// If `input` is no whole number of rows or has more than `into` has room for.
    pub fn forward(&self, input: &[f32], into: &mut Activations) {
        let batch = input.len() / self.shape.inputs;
        assert_eq!(batch * self.shape.inputs, input.len(), "input must be whole rows");
        into.batch = batch;
        for (index, layer) in self.layers.iter().enumerate() {
            let (before, rest) = into.results.split_at_mut(index);
            let below = before.last().map_or(input, |below| &below[..batch * layer.depth]);
            let out = &mut rest[0][..batch * layer.width];
            let (weight, bias) = (layer.weight(&self.parameters), layer.bias(&self.parameters));
            product_plus(below, layer.depth, weight, bias, out);
            if index + 1 < self.layers.len() {
                match self.shape.activation {
                    Activation::Tanh => tanh_all(out),
                    Activation::Relu => out.iter_mut().for_each(|x| *x = x.max(0.0)),
                }
            }
        }
    }

    /// Writes the gradients of the loss by all parameters, given the derivatives by the
    /// outputs in `passed` (see [`Activations::output_delta`]) and the input of the forward pass.
    pub fn backward(&self, input: &[f32], passed: &mut Activations, gradients: &mut [f32]) {
        let batch = passed.batch;
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let (deltas_below, delta) = passed.deltas.split_at_mut(index);
            let delta = &delta[0][..batch * layer.width];
            let result_below = index.checked_sub(1).map(|below| &passed.results[below]);
            let below = result_below.map_or(input, |below| &below[..batch * layer.depth]);
            let own = &mut gradients[layer.start..layer.end()];
            let (weight, bias) = own.split_at_mut(layer.depth * layer.width);
            product_of_columns(below, layer.depth, delta, layer.width, weight);
            sum_of_rows(delta, layer.width, bias);

            let Some(delta_below) = deltas_below.last_mut() else { continue };
            let delta_below = &mut delta_below[..batch * layer.depth];
            let flipped = &mut passed.transposed[..layer.depth * layer.width];
            transpose(layer.weight(&self.parameters), layer.width, flipped);
            product(delta, layer.width, flipped, delta_below);
            match self.shape.activation {
                Activation::Tanh => through_tanh(delta_below, below),
                Activation::Relu => delta_below.iter_mut().zip(below).for_each(|(delta, y)| {
                    *delta = if *y > 0.0 { *delta } else { 0.0 };
                }),
            }
        }
    }

    /// Number of dense layers.
    pub fn depth(&self) -> usize {
        self.layers.len()
    }

    /// Weight (`outputs x inputs`, as PyTorch stores it) and bias of one layer, taken from any vector
    /// laid out like the parameters: the parameters, or the moments of an optimiser.
    pub fn layer_of(&self, flat: &[f32], index: usize) -> (Vec<f32>, Vec<f32>) {
        let layer = &self.layers[index];
        let stored = layer.weight(flat);
        let weight = (0..layer.outputs * layer.inputs)
            .map(|i| stored[i % layer.inputs * layer.width + i / layer.inputs])
            .collect();
        (weight, layer.bias(flat)[..layer.outputs].to_vec())
    }

    /// Writes weight and bias of one layer, as given by [`Mlp::layer_of`], into a vector laid out like
    /// the parameters.
    pub fn set_layer_of(&self, flat: &mut [f32], index: usize, weight: &[f32], bias: &[f32]) {
        let layer = &self.layers[index];
        for (i, value) in weight.iter().enumerate() {
            let (output, input) = (i / layer.inputs, i % layer.inputs);
            flat[layer.start + input * layer.width + output] = *value;
        }
        let start = layer.start + layer.depth * layer.width;
        flat[start..start + layer.outputs].copy_from_slice(bias);
    }

    /// Inputs and outputs of one layer.
    pub fn layer_shape(&self, index: usize) -> (usize, usize) {
        (self.layers[index].inputs, self.layers[index].outputs)
    }

    fn set_layer(&mut self, index: usize, weight: &[f32], bias: &[f32]) {
        let mut flat = std::mem::take(&mut self.parameters);
        self.set_layer_of(&mut flat, index, weight, bias);
        self.parameters = flat;
    }

    /// The bare matrix products of one forward and one backward pass, and nothing else: what an update
    /// cannot do without. For benchmarks.
    pub fn bare_products(&self, input: &[f32], passed: &mut Activations, out: &mut [f32]) {
        let batch = input.len() / self.shape.inputs;
        for (index, layer) in self.layers.iter().enumerate() {
            let (before, rest) = passed.results.split_at_mut(index);
            let below = before.last().map_or(input, |below| &below[..batch * layer.depth]);
            let out = &mut rest[0][..batch * layer.width];
            product(below, layer.depth, layer.weight(&self.parameters), out);
        }
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let (deltas_below, delta) = passed.deltas.split_at_mut(index);
            let delta = &delta[0][..batch * layer.width];
            let result_below = index.checked_sub(1).map(|below| &passed.results[below]);
            let below = result_below.map_or(input, |below| &below[..batch * layer.depth]);
            let own = &mut out[layer.start..layer.start + layer.depth * layer.width];
            product_of_columns(below, layer.depth, delta, layer.width, own);
            if let Some(delta_below) = deltas_below.last_mut() {
                let flipped = &passed.transposed[..layer.depth * layer.width];
                product(delta, layer.width, flipped, &mut delta_below[..batch * layer.depth]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
