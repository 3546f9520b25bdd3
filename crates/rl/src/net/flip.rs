//! Rows for columns in whole registers: the one loop that a compiler does not find by itself. It moves numbers
//! and computes none, so the bits are those of the plain loop.

use pulp::x86::V3;

use super::kernels::{LANES, block, store};

/// `out = bT`, one square of eight rows and eight columns at a time.
#[inline(always)]
pub(super) fn transpose(simd: V3, b: &[f32], width: usize, out: &mut [f32]) {
    let depth = b.len() / width;
    for row in (0..depth).step_by(LANES) {
        for column in (0..width).step_by(LANES) {
            let [a, b, c, d, e, f, g, h] =
                [0, 1, 2, 3, 4, 5, 6, 7].map(|index| block(&b[(row + index) * width..], column));
            let flipped = square(simd, [a, b, c, d, e, f, g, h]);
            for (index, line) in flipped.iter().enumerate() {
                store(&mut out[(column + index) * depth..], row, *line);
            }
        }
    }
}

/// Three rounds of exchanges: single numbers of neighbouring rows, pairs, then halves.
#[inline(always)]
fn square(simd: V3, rows: [[f32; LANES]; LANES]) -> [[f32; LANES]; LANES] {
    let avx = simd.avx;
    let [a, b, c, d, e, f, g, h] = rows.map(pulp::cast);
    let low = |x, y| avx._mm256_unpacklo_ps(x, y);
    let high = |x, y| avx._mm256_unpackhi_ps(x, y);
    let (ab, cd, ef, gh) = (low(a, b), low(c, d), low(e, f), low(g, h));
    let (ab_high, cd_high, ef_high, gh_high) = (high(a, b), high(c, d), high(e, f), high(g, h));
    let first = |x, y| avx._mm256_shuffle_ps::<0x44>(x, y);
    let last = |x, y| avx._mm256_shuffle_ps::<0xee>(x, y);
    let upper = [first(ab, cd), last(ab, cd), first(ab_high, cd_high), last(ab_high, cd_high)];
    let lower = [first(ef, gh), last(ef, gh), first(ef_high, gh_high), last(ef_high, gh_high)];
    let [p, q, r, s] = upper;
    let [t, u, v, w] = lower;
    let left = |x, y| pulp::cast(avx._mm256_permute2f128_ps::<0x20>(x, y));
    let right = |x, y| pulp::cast(avx._mm256_permute2f128_ps::<0x31>(x, y));
    [
        left(p, t),
        left(q, u),
        left(r, v),
        left(s, w),
        right(p, t),
        right(q, u),
        right(r, v),
        right(s, w),
    ]
}
