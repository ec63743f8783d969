// Statistics over the rows of an evaluation. Draws are seeded: the same rows have the same interval each time.

const DRAWS = 2000;

// Numbers from 0 to 1 (mulberry32).
function seededNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function meanOf(values) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

// The mean of values and its interval of 95 %, by drawing the rows anew.
export function bootstrapMean(values) {
  const mean = meanOf(values);
  if (values.length < 2) return { mean, low: null, high: null, count: values.length };
  const next = seededNumbers(values.length);
  const means = Float64Array.from({ length: DRAWS }, () => {
    let sum = 0;
    for (let at = 0; at < values.length; at++) sum += values[Math.floor(next() * values.length)];
    return sum / values.length;
  }).sort();
  return { mean, low: means[Math.floor(DRAWS * 0.025)], high: means[Math.ceil(DRAWS * 0.975) - 1], count: values.length };
}

// Whether one of k answers is right, where `right` of `count` are: the unbiased estimator.
export function passAtK(count, right, k) {
  let none = 1;
  for (let at = 0; at < k; at++) none *= Math.max(0, count - right - at) / (count - at);
  return 1 - none;
}

// The rows with which a mean difference like this one, with this spread, is told from 0 in four of five evaluations.
export function rowsToSeparate(differences) {
  const mean = meanOf(differences);
  if (!mean || differences.length < 2) return null;
  const square = differences.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (differences.length - 1);
  return Math.max(2, Math.ceil(((1.96 + 0.84) ** 2 * square) / mean ** 2));
}
