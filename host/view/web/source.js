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

export const serverSource = {
  isLive: true,
  runs: () => ask("api/runs"),
  details: (run) => ask(`api/runs/${run}`),
  series: (run, request) => ask(`api/runs/${run}/series`, request),
  samples: (run, request) => ask(`api/runs/${run}/samples`, request),
  sample: (run, id) => ask(`api/runs/${run}/samples/${encodeURIComponent(id)}`),
  histogram: (run, request) => ask(`api/runs/${run}/histogram`, request),
  difference: (one, other) => ask(`api/runs/${one}/difference/${other}`),
};
