//! Prints figures.

/// Prints times in milliseconds: the median, the 99th percentile, the maximum and the count.
pub(crate) fn row(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let part = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    let (p50, p99, most) = (part(0.5), part(0.99), part(1.0));
    println!(
        "{name:44}{p50:8.2} ms   p99 {p99:7.2}   most {most:7.2}   of {}",
        times.len()
    );
}
