// A tool with which the policy guesses a number that the row sets.

import { InvalidInput, tool } from "gavel";

/** The parameters that a run may set. */
export interface Params {
  /** How many guesses the policy has. */
  guesses: number;
}

/** What the calls of a trajectory share. */
export interface Game {
  number: number;
  left: number;
}

// Once, before any trajectory; an error stops a run before it starts.
export function params({ guesses = 10, ...others }: Record<string, unknown>): Params {
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) throw new Error(`unknown parameter \`${unknown}\`, expected \`guesses\``);
  if (typeof guesses !== "number" || !Number.isSafeInteger(guesses) || guesses < 1) {
    throw new Error("`guesses` must be a whole number, 1 or more");
  }
  return { guesses };
}

// Once a trajectory. The policy does not see the settings.
export function open({ settings: { number }, params }: { settings: Record<string, unknown>; params: Params }): Game {
  if (typeof number !== "number") throw new InvalidInput("the row sets no `number`");
  return { number, left: params.guesses };
}

export function guess({ number }: { number: number }, game: Game): string {
  if (game.left === 0) throw new InvalidInput("no guess is left");
  game.left -= 1;
  if (number === game.number) return "right";
  return number < game.number ? "higher" : "lower";
}

// The arguments of a call fit the schema.
tool<Params, Game>({
  params,
  open,
  functions: {
    guess: {
      description: 'Guesses the number. Returns "right", or whether the number is "higher" or "lower".',
      parameters: {
        type: "object",
        properties: { number: { type: "integer", minimum: 1, maximum: 100, description: "The guess." } },
        required: ["number"],
        additionalProperties: false,
      },
      call: guess,
    },
    guesses_left: {
      description: "Returns how many guesses are left.",
      call: (_, game) => game.left,
    },
  },
});
