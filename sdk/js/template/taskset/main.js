// A dataset of sums of two numbers.

import { InvalidInput, taskset } from "gavel";

// Once, before any row; an error stops a run before it starts.
export function params({ digits = 2, length = 1000, ...others }) {
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) throw new Error(`unknown parameter \`${unknown}\`, expected \`digits\` or \`length\``);
  if (!isWhole(digits) || digits < 1 || digits > 9) throw new Error("`digits` must be a whole number from 1 to 9");
  if (!isWhole(length)) throw new Error("`length` must be a whole number, 0 or more");
  return { digits, length };
}

// Once a row: the same index and seed give the same row. Without `length` the rows never end.
export const row = taskset(
  ({ index, seed, params }) => {
    if (index >= params.length) throw new InvalidInput(`there is no row ${index}: there are ${params.length}`);
    const [a, b] = twoNumbers(index, seed, 10 ** params.digits);
    return { prompt: `What is ${a} + ${b}? End with "Answer:" and the sum.`, ground_truth: `${a + b}` };
  },
  { params, length: ({ length }) => length },
);

/** Two numbers below `limit` that follow from the index and the seed (SplitMix64). */
export function twoNumbers(index, seed, limit) {
  let bits = BigInt.asUintN(64, seed + (BigInt(index) + 1n) * 0x9e3779b97f4a7c15n);
  bits = BigInt.asUintN(64, (bits ^ (bits >> 30n)) * 0xbf58476d1ce4e5b9n);
  bits = BigInt.asUintN(64, (bits ^ (bits >> 27n)) * 0x94d049bb133111ebn);
  bits ^= bits >> 31n;
  return [Number(bits >> 32n) % limit, Number(bits & 0xffffffffn) % limit];
}

function isWhole(value) {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
