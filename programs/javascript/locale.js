// What programs use of `Intl`, which the engine is built without: the order of texts, and numbers with commas. It is
// what Node.js does for English; other languages get the same.

const MARKS = /[\u0300-\u036f]/g;
const BASES = {
  à: "a", á: "a", â: "a", ã: "a", ä: "a", å: "a", ç: "c", è: "e", é: "e", ê: "e", ë: "e", ì: "i", í: "i", î: "i", ï: "i",
  ñ: "n", ò: "o", ó: "o", ô: "o", õ: "o", ö: "o", ù: "u", ú: "u", û: "u", ü: "u", ý: "y", ÿ: "y", ß: "ss", æ: "ae", ø: "o",
};
// The order of punctuation in the default collation, before digits and letters.
const PUNCTUATION = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/** The key of a character: white space, punctuation, digits, letters, and then all others by their codes. */
function weight(character) {
  if (/\s/.test(character)) return [0, character.codePointAt(0)];
  const at = PUNCTUATION.indexOf(character);
  if (at >= 0) return [1, at];
  if (character >= "0" && character <= "9") return [2, character.charCodeAt(0)];
  if (character >= "a" && character <= "z") return [3, character.charCodeAt(0)];
  return [4, character.codePointAt(0)];
}

const baseOf = (text) => Array.from(text.toLowerCase(), (each) => BASES[each] ?? each).join("").replace(MARKS, "");

function compareBases(one, other, isNumeric) {
  const parts = isNumeric ? /[0-9]+|[^0-9]/gu : /./gsu;
  const left = one.match(parts) ?? [];
  const right = other.match(parts) ?? [];
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    if (left[at] === right[at]) continue;
    if (isNumeric && /^[0-9]/.test(left[at]) && /^[0-9]/.test(right[at])) {
      const difference = Number(left[at]) - Number(right[at]);
      if (difference !== 0) return Math.sign(difference);
      continue;
    }
    const [kind, code] = weight(left[at]);
    const [otherKind, otherCode] = weight(right[at]);
    if (kind !== otherKind) return kind < otherKind ? -1 : 1;
    if (code !== otherCode) return code < otherCode ? -1 : 1;
  }
  return Math.sign(left.length - right.length);
}

function compareCodes(one, other) {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** -1, 0 or 1, as `Intl.Collator` compares with the same options. */
export function compareTexts(one, other, { numeric = false, sensitivity = "variant", caseFirst } = {}) {
  one = String(one);
  other = String(other);
  if (one === other) return 0;
  const byBase = compareBases(baseOf(one), baseOf(other), numeric);
  if (byBase !== 0 || sensitivity === "base") return byBase;
  if (sensitivity !== "case") {
    const byAccent = compareCodes(one.toLowerCase(), other.toLowerCase());
    if (byAccent !== 0 || sensitivity === "accent") return byAccent;
  }
  // Lower case comes first.
  for (let at = 0; at < Math.min(one.length, other.length); at += 1) {
    if (one[at] === other[at]) continue;
    const isLower = one[at] === one[at].toLowerCase() && one[at] !== one[at].toUpperCase();
    return isLower === (caseFirst === "upper") ? 1 : -1;
  }
  return Math.sign(one.length - other.length);
}

/** A number as `Intl.NumberFormat` writes it in English. */
export function numberText(value, options = {}) {
  const isPercent = options.style === "percent";
  const isMoney = options.style === "currency";
  const least = options.minimumFractionDigits ?? (isMoney ? 2 : 0);
  const most = Math.max(least, options.maximumFractionDigits ?? (isMoney ? 2 : isPercent ? 0 : 3));
  let text;
  if (typeof value === "bigint") text = String(value);
  else if (Number.isNaN(value)) return "NaN";
  else if (!Number.isFinite(value)) return value < 0 ? "-∞" : "∞";
  else text = rounded(isPercent ? value * 100 : value, most);
  const negative = text.startsWith("-");
  let [whole, fraction = ""] = text.replace("-", "").split(".");
  fraction = fraction.replace(/0+$/, "").padEnd(least, "0");
  whole = whole.padStart(options.minimumIntegerDigits ?? 1, "0");
  if (options.useGrouping !== false) whole = whole.replace(/\B(?=([0-9]{3})+$)/g, ",");
  const signs = { USD: "$", EUR: "€", GBP: "£", JPY: "¥", INR: "₹" };
  const money = isMoney ? (signs[options.currency] ?? `${options.currency}\u00a0`) : "";
  return `${negative ? "-" : ""}${money}${whole}${fraction === "" ? "" : `.${fraction}`}${isPercent ? "%" : ""}`;
}

/** The value with this many digits after the point. Half is rounded away from 0, by the digits that are printed. */
function rounded(value, digits) {
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  let exact = String(Math.abs(value));
  if (exact.includes("e+")) exact = wholeText(exact);
  else if (exact.includes("e")) return value.toFixed(digits);
  const [whole, fraction = ""] = exact.split(".");
  if (fraction.length <= digits) return sign + exact;
  let all = BigInt(whole + fraction.slice(0, digits).padEnd(digits, "0"));
  if (fraction[digits] >= "5") all += 1n;
  const text = String(all).padStart(digits + 1, "0");
  const split = text.length - digits;
  return `${sign}${text.slice(0, split)}${digits > 0 ? `.${text.slice(split)}` : ""}`;
}

/** All digits of a number such as `1.5e+21`. */
function wholeText(text) {
  const [digits, exponent] = text.split("e+");
  const [whole, fraction = ""] = digits.split(".");
  return whole + fraction.padEnd(Number(exponent), "0");
}

/** Gives the global classes what the engine lacks. */
export function install(target) {
  if (target.Intl !== undefined) return;
  class Collator {
    #options;
    constructor(_, options) {
      this.#options = options;
      this.compare = (one, other) => compareTexts(one, other, this.#options);
    }
  }
  class NumberFormat {
    #options;
    constructor(_, options) {
      this.#options = options;
      this.format = (value) => numberText(value, this.#options);
    }
  }
  const define = (object, name, value) => Object.defineProperty(object, name, { value, writable: true, configurable: true });
  define(target, "Intl", { Collator, NumberFormat });
  define(String.prototype, "localeCompare", function localeCompare(other, _, options) {
    return compareTexts(this, other, options);
  });
  define(Number.prototype, "toLocaleString", function toLocaleString(_, options) {
    return numberText(Number(this), options);
  });
  define(BigInt.prototype, "toLocaleString", function toLocaleString(_, options) {
    return numberText(BigInt(this), options);
  });
}
