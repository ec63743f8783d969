// What the page shows is in its address, behind `#`: a link opens the same view, and the way back works.

export function readState() {
  const [view, query = ""] = location.hash.slice(1).split("?");
  return { view: view || "curves", params: new URLSearchParams(query) };
}

export function hashOf(view, params) {
  const kept = new URLSearchParams();
  for (const [name, value] of params instanceof URLSearchParams ? params : Object.entries(params)) {
    if (value !== "" && value != null && value !== false) kept.append(name, value === true ? "1" : value);
  }
  const query = kept.toString();
  return `#${view}${query ? `?${query}` : ""}`;
}

// Goes to another view. With `replace`, the way back does not stop at the one before.
export function go(view, params, replace = false) {
  const hash = hashOf(view, params);
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(null, "", hash);
    window.dispatchEvent(new Event("gavelstate"));
  } else {
    location.hash = hash;
  }
}

// Changes parameters of what is shown.
export function change(changes, replace = true) {
  const { view, params } = readState();
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value == null || value === false) params.delete(name);
    else params.set(name, value === true ? "1" : value);
  }
  go(view, params, replace);
}

// Notes a change without showing the view again.
export function remember(changes) {
  const { view, params } = readState();
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value == null || value === false) params.delete(name);
    else params.set(name, value);
  }
  history.replaceState(null, "", hashOf(view, params));
}
