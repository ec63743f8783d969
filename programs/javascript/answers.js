// Answers to calls, in a child that has the code. checks.js reads them in another.

import { encode, NoForm } from "./values.js";

/** The value of a promise, once all that it waits for is done; any other value is itself. */
export async function settled(value, loop) {
  if (typeof value?.then !== "function") return value;
  let end = null;
  value.then(
    (result) => {
      end = { result };
    },
    (error) => {
      end = { error };
    },
  );
  await loop.run();
  if (end === null) throw new Error("a promise is not settled, and there is nothing left to do");
  if ("error" in end) throw end.error;
  return end.result;
}

/** The line that answers a call. */
export async function answer(call, values, loop) {
  let isPromise = false;
  try {
    let value;
    loop.do(() => {
      value = call(...values);
    });
    isPromise = typeof value?.then === "function";
    value = await settled(value, loop);
    try {
      return { value: encode(value), args: encode(values), isPromise };
    } catch (error) {
      if (!(error instanceof NoForm)) throw error;
      return { object: error.message, isPromise };
    }
  } catch (error) {
    const names = [];
    for (let each = error; each !== null && typeof each === "object"; each = Object.getPrototypeOf(each)) {
      const name = each.constructor?.name;
      if (typeof name === "string" && !names.includes(name)) names.push(name);
    }
    const isError = error instanceof Error;
    return { raised: names, name: isError ? String(error.name) : "Error", text: isError ? String(error.message) : String(error), isPromise };
  }
}
