// How many findings each folder still has. The numbers only fall: `node scripts/check-prose.ts` fails where there are
// more, and prints the numbers to write here where there are fewer. The file goes when it is empty.
export const BASELINE: Readonly<Record<string, number>> = {
  server: 853,
}
