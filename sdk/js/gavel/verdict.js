// Verdicts of a reward on a sample.

/** The plugin cannot work on this sample or its reference. */
export class InvalidInput extends Error {
  name = "InvalidInput";
}

/** A service that the plugin needs did not answer; another attempt may succeed. */
export class Unavailable extends Error {
  name = "Unavailable";
}

export function abstain(reason) {
  return { abstained: reason };
}

/** The value that a function returned, as a variant of the contract. */
export function asVerdict(value) {
  if (value === undefined || value === null) {
    throw new TypeError(`the function returned ${value}: end it with \`return\` and a number, or \`return abstain("why")\` to give none`);
  }
  if (typeof value === "object" && "abstained" in value) {
    return { tag: "abstained", val: String(value.abstained) };
  }
  const given = typeof value === "object" ? value : { score: value };
  if (!("score" in given)) {
    throw new TypeError(`the returned object has no \`score\` (its keys: ${Object.keys(given).join(", ") || "none"})`);
  }
  const known = ["score", "metrics", "note", "credit", "payload"];
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new TypeError(`the returned object has \`${unknown}\`: put numbers to be logged into \`metrics\``);
  }
  const metrics = Object.entries(given.metrics ?? {});
  const credit = given.credit ?? [];
  if (!Array.isArray(credit)) throw new TypeError(`\`credit\` must be an array, not ${typeof credit}`);
  return {
    tag: "scored",
    val: {
      value: finite("the score", given.score),
      metrics: metrics.map(([name, value]) => ({ name, value: finite(`the metric \`${name}\``, value) })),
      credit: credit.map(asCredit),
      note: given.note == null ? null : String(given.note),
      payload: given.payload == null ? null : asJson("payload", given.payload),
    },
  };
}

/** The JSON of a value that is recorded; the error names it. */
export function asJson(what, value) {
  const json = JSON.stringify(value);
  if (json === undefined) throw new TypeError(`the \`${what}\` is not JSON: it is ${typeof value}`);
  return json;
}

function asCredit({ trajectory, message, start, end, value }) {
  const places = Object.entries({ trajectory, message, start, end });
  for (const [name, place] of places) {
    if (!Number.isInteger(place) || place < 0 || place >= 2 ** 32) {
      throw new TypeError(`the \`${name}\` of a credit must be a whole number from 0 to 2 ** 32 - 1, not ${String(place)}`);
    }
  }
  return { ...Object.fromEntries(places), value: finite("the `value` of a credit", value) };
}

function finite(what, value) {
  const number = typeof value === "boolean" ? Number(value) : value;
  if (typeof number !== "number") throw new TypeError(`${what} must be a number, not ${typeof value}`);
  if (!Number.isFinite(number)) throw new RangeError(`${what} must be finite, not ${number}`);
  return number;
}
