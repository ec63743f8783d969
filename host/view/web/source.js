// The data of a view, from its server.

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, { ...options, credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new Error("the server does not answer\nhint: start gavel view again, and open the link that it prints");
  }
  const value = await answer.json().catch(() => ({ error: `the server answered ${answer.status} without JSON` }));
  if (!answer.ok) throw new Error(value.error ?? `the server answered ${answer.status}`);
  return value;
}

const IDS_OF_A_REQUEST = 4000;

async function tokens(run, ids) {
  const [all, found] = [[...new Set(ids)], { from: "", bytes: {}, special: [] }];
  for (let start = 0; start < all.length; start += IDS_OF_A_REQUEST) {
    const part = await ask(`api/runs/${run}/tokens`, { ids: all.slice(start, start + IDS_OF_A_REQUEST) });
    Object.assign(found.bytes, part.bytes);
    found.special.push(...part.special);
    found.from = part.from;
  }
  return found;
}

export const serverSource = {
  isLive: true,
  runs: () => ask("api/runs"),
  details: (run) => ask(`api/runs/${run}`),
  series: (run, request) => ask(`api/runs/${run}/series`, request),
  samples: (run, request) => ask(`api/runs/${run}/samples`, request),
  sample: (run, id) => ask(`api/runs/${run}/samples/${encodeURIComponent(id)}`),
  histogram: (run, request) => ask(`api/runs/${run}/histogram`, request),
  tokens,
  step: (run, step) => ask(`api/runs/${run}/steps/${step}`),
  evaluations: () => ask("api/evaluations"),
  answers: (number) => ask(`api/evaluations/${number}`),
  answersTo: (number, row, source) => ask(`api/evaluations/${number}`, { row, source }),
  findings: (run) => ask(`api/runs/${run}/findings`),
  difference: (one, other) => ask(`api/runs/${one}/difference/${other}`),
};
