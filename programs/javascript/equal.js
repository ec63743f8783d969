// Whether two values are equal throughout, as `assert.deepEqual` and `assert.deepStrictEqual` compare.

const { getPrototypeOf, getOwnPropertySymbols } = Object;
const tagOf = (value) => Object.prototype.toString.call(value);
const isObject = (value) => typeof value === "object" && value !== null;

/** `strict` compares classes and the kinds of primitive values too. */
export function isDeepEqual(one, other, strict) {
  return same(one, other, strict, []);
}

function samePrimitive(one, other, strict) {
  if (Object.is(one, other)) return true;
  if (strict) return false;
  // biome-ignore lint/suspicious/noDoubleEquals: it is what `assert.equal` is.
  return one == other || (Number.isNaN(one) && Number.isNaN(other));
}

function same(one, other, strict, seen) {
  if (one === other) return one !== 0 || !strict || Object.is(one, other);
  if (!isObject(one) || !isObject(other)) {
    if (typeof one === "function" || typeof other === "function") return false;
    return (!isObject(one) && !isObject(other)) ? samePrimitive(one, other, strict) : false;
  }
  if (strict && getPrototypeOf(one) !== getPrototypeOf(other)) return false;
  if (tagOf(one) !== tagOf(other)) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  if (seen.some(([left, right]) => left === one && right === other)) return true;
  seen.push([one, other]);
  const result = sameContent(one, other, strict, seen);
  seen.pop();
  return result;
}

function sameContent(one, other, strict, seen) {
  const equal = (left, right) => same(left, right, strict, seen);
  if (one instanceof Date && other instanceof Date && !Object.is(one.getTime(), other.getTime())) return false;
  if (one instanceof RegExp && (String(one) !== String(other) || one.lastIndex !== other.lastIndex)) return false;
  if (one instanceof Error && (one.message !== other.message || one.name !== other.name)) return false;
  for (const Kind of [Number, String, Boolean, BigInt, Symbol]) {
    if (one instanceof Kind && !Object.is(one.valueOf(), other.valueOf())) return false;
  }
  if (ArrayBuffer.isView(one)) {
    if (one.length !== other.length || one.byteLength !== other.byteLength) return false;
    for (let at = 0; at < one.length; at += 1) if (!samePrimitive(one[at], other[at], strict)) return false;
    return true;
  }
  if (one instanceof Set) return one.size === other.size && sameMembers([...one], [...other], equal);
  if (one instanceof Map) {
    return one.size === other.size && sameMembers([...one], [...other], ([key, value], [otherKey, otherValue]) => equal(key, otherKey) && equal(value, otherValue));
  }
  if (Array.isArray(one) && one.length !== other.length) return false;
  const keys = Object.keys(one);
  if (keys.length !== Object.keys(other).length) return false;
  if (!keys.every((key) => Object.prototype.propertyIsEnumerable.call(other, key) && equal(one[key], other[key]))) return false;
  if (!strict) return true;
  const symbols = (value) => getOwnPropertySymbols(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key));
  const own = symbols(one);
  return own.length === symbols(other).length && own.every((key) => Object.hasOwn(other, key) && equal(one[key], other[key]));
}

/** Whether each member has an equal one of its own on the other side. Most are in the same order. */
function sameMembers(members, others, equal) {
  if (members.length !== others.length) return false;
  const left = [...others];
  return members.every((member, at) => {
    const found = at < others.length && left.includes(others[at]) && equal(member, others[at]) ? left.indexOf(others[at]) : left.findIndex((each) => equal(member, each));
    if (found < 0) return false;
    left.splice(found, 1);
    return true;
  });
}
