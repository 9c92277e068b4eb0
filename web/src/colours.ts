// SPDX-License-Identifier: MIT
// Colours of boxes, by image; what samples alone say is hatched, so that colour is never the only sign.

export interface Palette {
  isDark: boolean;
  text: string;
  faint: string;
  line: string;
  accent: string;
  match: string;
  background: string;
  hatch: CanvasPattern | null;
  speck: string; // several boxes that are narrower than a pixel
  fill(image: string, kind: number): string;
  // More is red, less is green, the same is grey; the stronger, the greater the part of it that differs.
  change(more: number, whole: number): string;
}

const kindKernel = 2;
// Kernel and Java have colours of their own: what they are told apart from are often one or two images.
const cache = new Map<string, string>();

function hueOf(text: string): number {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return (hash >>> 0) % 360;
}

function makeHatch(isDark: boolean): CanvasPattern | null {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const c = tile.getContext("2d");
  if (!c) return null;
  c.strokeStyle = isDark ? "rgba(255,255,255,.22)" : "rgba(0,0,0,.2)";
  c.lineWidth = 1.2;
  c.beginPath();
  for (const x of [-8, 0, 8]) {
    c.moveTo(x, 8);
    c.lineTo(x + 8, 0);
  }
  c.stroke();
  return c.createPattern(tile, "repeat");
}

export function palette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const isDark = style.getPropertyValue("--is-dark").trim() === "1";
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  return {
    isDark,
    text: colour("--text"),
    faint: colour("--faint"),
    line: colour("--line"),
    accent: colour("--accent"),
    match: colour("--match"),
    background: colour("--background"),
    hatch: makeHatch(isDark),
    speck: isDark ? "hsl(220 9% 44%)" : "hsl(220 10% 70%)",
    fill(image, kind) {
      const key = `${isDark}${kind}${image}`;
      let fill = cache.get(key);
      if (!fill) {
        const isKernel = kind === kindKernel || image === "[kernel]";
        const hue = isKernel ? 265 : image === "[java]" ? 30 : hueOf(image);
        const saturation = image || isKernel ? 45 : 12;
        fill = isDark ? `hsl(${hue} ${saturation}% 32%)` : `hsl(${hue} ${saturation}% 82%)`;
        cache.set(key, fill);
      }
      return fill;
    },
    change(more, whole) {
      const part = whole > 0 ? Math.min(1, Math.abs(more) / whole) : 0;
      if (!more) return isDark ? "hsl(220 4% 34%)" : "hsl(220 6% 84%)";
      const hue = more > 0 ? 4 : 140;
      return isDark ? `hsl(${hue} ${20 + 25 * part}% ${32 - 4 * part}%)` : `hsl(${hue} ${35 + 20 * part}% ${89 - 13 * part}%)`;
    },
  };
}
