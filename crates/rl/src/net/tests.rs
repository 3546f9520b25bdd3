use super::*;

fn network(activation: Activation) -> Mlp {
    let shape = Shape { inputs: 3, hidden: vec![10, 9], outputs: 2, activation };
    Mlp::new(shape, Initial::PerInput, Seed::new(3))
}

fn rows(count: usize) -> Vec<f32> {
    (0..count * 3).map(|i| (i as f32 * 0.7).sin()).collect()
}

/// Half the squared outputs, summed: its derivative by an output is that output.
fn loss(network: &Mlp, input: &[f32], room: &mut Activations) -> f64 {
    network.forward(input, room);
    let rows = input.len() / network.shape.inputs;
    (0..rows).flat_map(|row| room.output(row)).map(|y| f64::from(*y).powi(2) / 2.0).sum()
}

#[test]
fn gradients_agree_with_finite_differences() {
    for activation in [Activation::Tanh, Activation::Relu] {
        let mut network = network(activation);
        let input = rows(5);
        let mut room = network.activations(5);
        loss(&network, &input, &mut room);
        for row in 0..5 {
            let output = room.output(row).to_vec();
            room.output_delta(row).copy_from_slice(&output);
        }
        let mut gradients = vec![0.0; network.parameters().len()];
        network.backward(&input, &mut room, &mut gradients);
        for (index, gradient) in gradients.iter().enumerate() {
            let kept = network.parameters[index];
            let mut at = |shift: f32| {
                network.parameters[index] = kept + shift;
                loss(&network, &input, &mut room)
            };
            let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
            network.parameters[index] = kept;
            let is_padding = kept == 0.0 && *gradient == 0.0;
            let close = (slope - f64::from(*gradient)).abs() <= 2e-3 * (1.0 + slope.abs());
            assert!(is_padding || close, "{activation:?} {index}: {slope} against {gradient}");
        }
    }
}

#[test]
fn a_batch_gives_each_row_what_it_gives_it_alone() {
    let network = network(Activation::Tanh);
    let input = rows(7);
    let mut together = network.activations(7);
    let mut alone = network.activations(1);
    network.forward(&input, &mut together);
    for (index, row) in input.chunks_exact(3).enumerate() {
        network.forward(row, &mut alone);
        assert_eq!(alone.output(0), together.output(index));
    }
}

#[test]
fn layers_come_out_as_they_went_in() {
    let network = network(Activation::Relu);
    let mut copy = vec![0.0; network.parameters().len()];
    for index in 0..network.depth() {
        let (weight, bias) = network.layer_of(network.parameters(), index);
        let (inputs, outputs) = network.layer_shape(index);
        assert_eq!((weight.len(), bias.len()), (inputs * outputs, outputs));
        network.set_layer_of(&mut copy, index, &weight, &bias);
    }
    assert_eq!(copy, network.parameters());
}

#[test]
fn a_network_worked_by_hand() {
    // One hidden unit: tanh(2 * 0.5 - 1) = 0, then 3 * 0 + 0.25.
    let shape = Shape { inputs: 1, hidden: vec![1], outputs: 1, activation: Activation::Tanh };
    let mut network = Mlp::new(shape, Initial::PerInput, Seed::new(0));
    network.set_layer(0, &[2.0], &[-1.0]);
    network.set_layer(1, &[3.0], &[0.25]);
    let mut room = network.activations(1);
    network.forward(&[0.5], &mut room);
    assert_eq!(room.output(0), [0.25]);
}
