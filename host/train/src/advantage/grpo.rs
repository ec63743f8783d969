//! Group-relative advantages.

/// `(r − mean) / (std + 1e-6)` with the sample standard deviation (Shao et
/// al., "DeepSeekMath", 2024, section 4.1); without the division where
/// `normalize_std` is off (Liu et al., "Understanding R1-Zero-like training",
/// 2025).
pub fn advantages(rewards: &[f64], normalize_std: bool) -> Vec<f64> {
    // Decided by comparison: the rounding of the mean must not become a signal.
    if rewards.windows(2).all(|pair| pair[0] == pair[1]) {
        return vec![0.0; rewards.len()];
    }
    let count = rewards.len() as f64;
    let mean = rewards.iter().sum::<f64>() / count;
    let variance = rewards.iter().map(|reward| (reward - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let scale = if normalize_std { variance.sqrt() + 1e-6 } else { 1.0 };
    rewards.iter().map(|reward| (reward - mean) / scale).collect()
}
