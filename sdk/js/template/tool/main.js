// A tool with which the policy guesses a number that the row sets.

import { InvalidInput, tool } from "gavel";

// Once, before any trajectory; an error stops a run before it starts.
export function params({ guesses = 10, ...others }) {
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) throw new Error(`unknown parameter \`${unknown}\`, expected \`guesses\``);
  if (!Number.isSafeInteger(guesses) || guesses < 1) throw new Error("`guesses` must be a whole number, 1 or more");
  return { guesses };
}

export const { open, functions } = tool({
  params,

  // Once a trajectory. The policy does not see the settings.
  open({ settings: { number }, params }) {
    if (typeof number !== "number") throw new InvalidInput("the row sets no `number`");
    return { number, left: params.guesses };
  },

  // The arguments fit the schema.
  functions: {
    guess: {
      description: 'Guesses the number. Returns "right", or whether the number is "higher" or "lower".',
      parameters: {
        type: "object",
        properties: { number: { type: "integer", minimum: 1, maximum: 100, description: "The guess." } },
        required: ["number"],
        additionalProperties: false,
      },
      call({ number }, game) {
        if (game.left === 0) throw new InvalidInput("no guess is left");
        game.left -= 1;
        if (number === game.number) return "right";
        return number < game.number ? "higher" : "lower";
      },
    },
    guesses_left: {
      description: "Returns how many guesses are left.",
      call: (_, game) => game.left,
    },
  },
});
