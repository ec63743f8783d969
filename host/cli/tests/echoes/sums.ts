// A tool that adds, and reports the sum in which it ended, unless that is 0.

import { tool } from "gavel";

interface Sums {
  sum: number;
}

tool<Record<string, never>, Sums>({
  open: () => ({ sum: 0 }),
  functions: {
    add: {
      description: "Adds.",
      parameters: { type: "object", properties: { by: { type: "integer" } }, required: ["by"] },
      call({ by }: { by: number }, sums) {
        sums.sum += by;
        return sums.sum;
      },
    },
  },
  finish: ({ sum }) => (sum === 0 ? null : { sum, "é": [null] }),
});
