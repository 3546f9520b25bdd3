//! The two matrix products behind forward and backward passes, and the loops over all parameters.
//!
//! Every loop is compiled twice by [`dispatch`], for plain x86-64 (or another processor) and for AVX2, and
//! chosen at run time. Loops over a whole batch are functions of their own, never inlined: in one large
//! function the compiler runs out of registers, and an update took a third longer in one build profile
//! than in another. No fused multiply-add is used and every sum has one fixed order, so all versions,
//! batch sizes and block sizes give the same bits.

use std::slice::ChunksExact;

use super::elementary::tanh;

/// Lanes of the narrowest block; widths of rows are padded to a multiple of it.
pub(crate) const LANES: usize = 8;

/// Runs `work` with the widest instructions this processor has.
#[inline(always)]
pub(crate) fn dispatch<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// The next multiple of [`LANES`].
pub(crate) const fn padded(width: usize) -> usize {
    width.div_ceil(LANES) * LANES
}

/// `out = a b`, with `a` of `rows x depth`, `b` of `depth x width`, all row after row.
///
/// `width` is a multiple of [`LANES`]. Sums run over the depth in order.
#[inline(never)]
pub(crate) fn product(a: &[f32], depth: usize, b: &[f32], out: &mut [f32]) {
    dispatch(
        #[inline(always)]
        || product_plus_any::<false>(a, depth, b, &[], out),
    );
}

/// `out = a b + bias`, with the same bias for every row.
#[inline(never)]
pub(crate) fn product_plus(a: &[f32], depth: usize, b: &[f32], bias: &[f32], out: &mut [f32]) {
    dispatch(
        #[inline(always)]
        || product_plus_any::<true>(a, depth, b, bias, out),
    );
}

#[inline(always)]
fn product_plus_any<const BIASED: bool>(
    a: &[f32],
    depth: usize,
    b: &[f32],
    bias: &[f32],
    out: &mut [f32],
) {
    let width = b.len() / depth;
    let mut column = 0;
    while column + 2 * LANES <= width {
        let start = if BIASED { block(bias, column) } else { [0.0; 2 * LANES] };
        product_columns(a, depth, b, start, out, (width, column));
        column += 2 * LANES;
    }
    if column < width {
        let start = if BIASED { block(bias, column) } else { [0.0; LANES] };
        product_columns(a, depth, b, start, out, (width, column));
    }
}

#[inline(always)]
fn product_columns<const N: usize>(
    a: &[f32],
    depth: usize,
    b: &[f32],
    start: [f32; N],
    out: &mut [f32],
    (width, column): (usize, usize),
) {
    // Cut up once for all blocks, and not zipped below: either would divide by the width in each block.
    let all = b.chunks_exact(width);
    let mut fours = a.chunks_exact(4 * depth);
    let mut outs = out.chunks_exact_mut(4 * width);
    for (a, out) in fours.by_ref().zip(outs.by_ref()) {
        let (a0, rest) = a.split_at(depth);
        let (a1, rest) = rest.split_at(depth);
        let (a2, a3) = rest.split_at(depth);
        let [mut s0, mut s1, mut s2, mut s3] = [start; 4];
        let mut rows = all.clone();
        for (((x0, x1), x2), x3) in a0.iter().zip(a1).zip(a2).zip(a3) {
            let Some(row) = rows.next() else { break };
            let b = block::<N>(row, column);
            for lane in 0..N {
                s0[lane] += x0 * b[lane];
                s1[lane] += x1 * b[lane];
                s2[lane] += x2 * b[lane];
                s3[lane] += x3 * b[lane];
            }
        }
        let (o0, rest) = out.split_at_mut(width);
        let (o1, rest) = rest.split_at_mut(width);
        let (o2, o3) = rest.split_at_mut(width);
        store(o0, column, s0);
        store(o1, column, s1);
        store(o2, column, s2);
        store(o3, column, s3);
    }
    let rest = fours.remainder().chunks_exact(depth);
    for (a, out) in rest.zip(outs.into_remainder().chunks_exact_mut(width)) {
        let mut sums = start;
        for (b, x) in b.chunks_exact(width).zip(a) {
            let b = block::<N>(b, column);
            for lane in 0..N {
                sums[lane] += x * b[lane];
            }
        }
        store(out, column, sums);
    }
}

/// `out = aT b`, with `a` of `rows x depth`, `b` of `rows x width`: the gradient of a weight.
///
/// Sums run over the rows in order.
#[inline(never)]
pub(crate) fn product_of_columns(
    a: &[f32],
    depth: usize,
    b: &[f32],
    width: usize,
    out: &mut [f32],
) {
    dispatch(
        #[inline(always)]
        || {
            let mut column = 0;
            while column + 2 * LANES <= width {
                outer_columns::<{ 2 * LANES }>(a, depth, b, width, out, column);
                column += 2 * LANES;
            }
            if column < width {
                outer_columns::<LANES>(a, depth, b, width, out, column);
            }
        },
    );
}

#[inline(always)]
fn outer_columns<const N: usize>(
    a: &[f32],
    depth: usize,
    b: &[f32],
    width: usize,
    out: &mut [f32],
    column: usize,
) {
    let (left, right) = (a.chunks_exact(depth), b.chunks_exact(width));
    let mut row = 0;
    while row + 4 <= depth {
        outer_block::<4, N>(left.clone(), right.clone(), width, out, (row, column));
        row += 4;
    }
    while row < depth {
        outer_block::<1, N>(left.clone(), right.clone(), width, out, (row, column));
        row += 1;
    }
}

#[inline(always)]
fn outer_block<const M: usize, const N: usize>(
    left: ChunksExact<'_, f32>,
    mut right: ChunksExact<'_, f32>,
    width: usize,
    out: &mut [f32],
    (row, column): (usize, usize),
) {
    let mut sums = [[0.0; N]; M];
    for a in left {
        let Some(b) = right.next() else { break };
        let a = block::<M>(a, row);
        let b = block::<N>(b, column);
        for (sums, x) in sums.iter_mut().zip(a) {
            for lane in 0..N {
                sums[lane] += x * b[lane];
            }
        }
    }
    for (index, sums) in sums.iter().enumerate() {
        store(&mut out[(row + index) * width..], column, *sums);
    }
}

#[inline(always)]
pub(super) fn block<const N: usize>(row: &[f32], start: usize) -> [f32; N] {
    *row[start..].first_chunk().expect("rows are padded to whole blocks")
}

#[inline(always)]
pub(super) fn store<const N: usize>(row: &mut [f32], start: usize, sums: [f32; N]) {
    row[start..start + N].copy_from_slice(&sums);
}

/// `out = bT`, with `b` of `depth x width`, both multiples of [`LANES`].
#[inline(never)]
pub(crate) fn transpose(b: &[f32], width: usize, out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return pulp::Simd::vectorize(
            simd,
            #[inline(always)]
            || super::flip::transpose(simd, b, width, out),
        );
    }
    let depth = b.len() / width;
    for (index, row) in b.chunks_exact(width).enumerate() {
        for (x, column) in row.iter().zip(out.chunks_exact_mut(depth)) {
            column[index] = *x;
        }
    }
}

/// `out =` the sum of the rows of `b`: the gradient of a bias.
#[inline(never)]
pub(crate) fn sum_of_rows(b: &[f32], width: usize, out: &mut [f32]) {
    dispatch(
        #[inline(always)]
        || {
            // Four sums side by side: an addition takes four steps, and one alone would wait for itself.
            let (wide, narrow) = out.as_chunks_mut::<{ 4 * LANES }>();
            let first = wide.len() * 4 * LANES;
            for (index, out) in wide.iter_mut().enumerate() {
                *out = sum_of_blocks(b, width, index * 4 * LANES);
            }
            for (index, out) in narrow.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                *out = sum_of_blocks(b, width, first + index * LANES);
            }
        },
    );
}

#[inline(always)]
fn sum_of_blocks<const N: usize>(b: &[f32], width: usize, column: usize) -> [f32; N] {
    let mut sums = [0.0; N];
    for row in b.chunks_exact(width) {
        let row = block::<N>(row, column);
        for lane in 0..N {
            sums[lane] += row[lane];
        }
    }
    sums
}

/// `x = tanh(x)`.
#[inline(never)]
pub(crate) fn tanh_all(values: &mut [f32]) {
    dispatch(
        #[inline(always)]
        || values.iter_mut().for_each(|value| *value = tanh(*value)),
    );
}

/// `delta = delta (1 - y^2)`: the derivative of `y = tanh(s)` by `s`.
#[inline(never)]
pub(crate) fn through_tanh(delta: &mut [f32], y: &[f32]) {
    dispatch(
        #[inline(always)]
        || delta.iter_mut().zip(y).for_each(|(delta, y)| *delta *= 1.0 - y * y),
    );
}

/// Sum of squares in 32 lanes, folded in order.
#[inline(never)]
pub(crate) fn sum_of_squares(values: &[f32]) -> f32 {
    dispatch(
        #[inline(always)]
        || {
            let mut sums = [0.0; 4 * LANES];
            let chunks = values.chunks_exact(4 * LANES);
            let rest: f32 = chunks.remainder().iter().map(|x| x * x).sum();
            for chunk in chunks {
                for (sum, x) in sums.iter_mut().zip(chunk) {
                    *sum += x * x;
                }
            }
            sums.iter().sum::<f32>() + rest
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, salt: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 37 + salt * 11) % 23) as f32 * 0.25 - 2.5).collect()
    }

    #[test]
    fn products_agree_with_the_definition() {
        // Multiples of a quarter, so sums are exact and the comparison can be too.
        for (rows, depth, width) in [(1, 6, 8), (5, 3, 24), (8, 16, 16), (7, 11, 32)] {
            let (a, b) = (numbers(rows * depth, 1), numbers(depth * width, 2));
            let bias = numbers(width, 3);
            let mut out = vec![f32::NAN; rows * width];
            dispatch(|| product_plus(&a, depth, &b, &bias, &mut out));
            let tall = numbers(rows * width, 4);
            let mut gradient = vec![f32::NAN; depth * width];
            dispatch(|| product_of_columns(&a, depth, &tall, width, &mut gradient));
            for j in 0..width {
                for i in 0..rows {
                    let sum: f32 = (0..depth).map(|k| a[i * depth + k] * b[k * width + j]).sum();
                    assert_eq!(out[i * width + j], sum + bias[j]);
                }
                for k in 0..depth {
                    let sum: f32 = (0..rows).map(|i| a[i * depth + k] * tall[i * width + j]).sum();
                    assert_eq!(gradient[k * width + j], sum);
                }
            }
        }
        let b = numbers(16 * 24, 5);
        let mut flipped = vec![0.0; 16 * 24];
        transpose(&b, 24, &mut flipped);
        for i in 0..16 {
            assert!((0..24).all(|j| flipped[j * 16 + i] == b[i * 24 + j]));
        }
    }

    #[test]
    fn dispatch_and_batch_size_do_not_change_a_bit() {
        let a: Vec<f32> = (0..9 * 13).map(|i| (i as f32).sin()).collect();
        let b: Vec<f32> = (0..13 * 24).map(|i| (i as f32).cos()).collect();
        let mut whole = vec![0.0; 9 * 24];
        dispatch(|| product(&a, 13, &b, &mut whole));
        for (row, expected) in a.chunks_exact(13).zip(whole.chunks_exact(24)) {
            let mut alone = [0.0; 24];
            product(row, 13, &b, &mut alone);
            assert_eq!(alone, expected);
        }
    }
}
