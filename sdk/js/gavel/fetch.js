// The global `fetch` of a component. The engine has one that sends a single
// request; plugin.toml declares `imports = ["http"]`.

import { Unavailable } from "./verdict.js";

const MAX_REDIRECTS = 10;

/** Makes `fetch` follow redirects, and its error one that makes the outcome `unavailable`. */
export function followingFetch(send) {
  return async (input, init = {}) => {
    let [url, options] = await asked(input, init);
    for (let redirects = 0; ; redirects += 1) {
      const response = await answered(send, url, options);
      const location = response.headers.get("location");
      if (![301, 302, 303, 307, 308].includes(response.status) || location === null || options.redirect === "manual") {
        if (redirects > 0) Object.defineProperty(response, "redirected", { value: true });
        return response;
      }
      if (options.redirect === "error") throw new TypeError(`${url} redirects to ${location}`);
      if (redirects === MAX_REDIRECTS) throw new TypeError(`${url} redirects more than ${MAX_REDIRECTS} times`);
      const target = new URL(location, url);
      options = redirected(options, response.status, target.origin === url.origin);
      url = target;
    }
  };
}

/** A `fetch` that says what is missing. */
export function noFetch() {
  throw new Error('no http here: add imports = ["http"] to plugin.toml, and grant the server in the run');
}

/** Why a request has no answer, in words; null for an error of another kind. */
export function interrupted(error) {
  if (["AbortError", "TimeoutError"].includes(error?.name)) return `${error.name}: no answer in time`;
  if (error instanceof TypeError && error.message.startsWith("IO error reading")) return `the answer broke off: ${error.message}`;
  return null;
}

/** The URL and the options of a request, with a body that can be sent again. */
async function asked(input, init) {
  if (!(input instanceof Request)) return [new URL(input), { ...init, method: (init.method ?? "GET").toUpperCase() }];
  const { method, headers, signal } = input;
  const options = { method, headers, signal, ...init };
  if (options.body === undefined && method !== "GET" && method !== "HEAD") options.body = await input.arrayBuffer();
  return [new URL(input.url), options];
}

async function answered(send, url, options) {
  try {
    return await send(url.href, options);
  } catch (error) {
    if (!(error instanceof TypeError) || !error.message.startsWith("NetworkError")) throw error;
    // The engine does not tell them apart; the outcome's reason names a request that was refused.
    throw new Unavailable(`${url.origin} did not answer, or no grant of the run covers it`, { cause: error });
  }
}

function redirected(options, status, sameOrigin) {
  const headers = new Headers(options.headers);
  // Another server must not get them.
  if (!sameOrigin) for (const name of ["authorization", "cookie"]) headers.delete(name);
  const { method, body, ...others } = options;
  // As browsers do it.
  if ((status === 303 && method !== "HEAD") || ([301, 302].includes(status) && method === "POST")) {
    for (const name of [...headers.keys()]) if (name.startsWith("content-")) headers.delete(name);
    return { ...others, headers, method: "GET" };
  }
  return { ...options, headers };
}
