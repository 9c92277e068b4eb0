// SPDX-License-Identifier: MIT
// picture.mjs URL: the picture of README, BUILD/screens/picture.png; docs/picture.png is that with a palette
// of 128 colours (ffmpeg -i picture.png -vf "split[a][b];[a]palettegen=128:0[p];[b][p]paletteuse=dither=none" -pix_fmt pal8).
import { statSync } from "node:fs";
import { close, equal, hasFailed, open, shot, text, verdict } from "./page.mjs";

const mostBytes = 150000;
const { page, errors } = await open(process.argv[2], { width: 1360, height: 680, hash: "#widths=490,256,120" });
await page.locator(".functions .rows .row .name").first().click();
await page.waitForSelector("aside .detail h2");
verdict("the picture has a function in detail", (await text(page, "aside .detail h2")).length > 0);
equal("and no error", [], errors);
await shot(page, "picture");
const bytes = statSync(`${process.env.ROOT}/docs/picture.png`).size;
verdict("the one in README is there and small", bytes > 10000 && bytes < mostBytes, bytes);
await close();
process.exit(hasFailed() ? 1 : 0);
