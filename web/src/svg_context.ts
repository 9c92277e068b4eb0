// SPDX-License-Identifier: MIT
// A surface that is drawn on as on a canvas and becomes an SVG: just those calls that the panes use.

const escaped = (text: string): string => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const short = (n: number): string => String(Math.round(n * 100) / 100);

export class SvgContext {
  fillStyle: unknown = "#000";
  strokeStyle: unknown = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "12px sans-serif";
  textBaseline = "alphabetic";
  private readonly parts: string[] = [];
  private path: string[] = [];
  private dash = "";

  // `measure` is a real canvas, since only that knows how wide a text is.
  constructor(
    private readonly measure: CanvasRenderingContext2D,
    private readonly isDark: boolean,
  ) {}

  private paint(style: unknown): string {
    return typeof style === "string" ? escaped(style) : "url(#hatch)";
  }
  private put(tag: string, attributes: string, text = ""): void {
    const alpha = this.globalAlpha === 1 ? "" : ` opacity="${short(this.globalAlpha)}"`;
    this.parts.push(text ? `<${tag} ${attributes}${alpha}>${text}</${tag}>` : `<${tag} ${attributes}${alpha}/>`);
  }
  private stroked(): string {
    return `fill="none" stroke="${this.paint(this.strokeStyle)}" stroke-width="${short(this.lineWidth)}"${this.dash ? ` stroke-dasharray="${this.dash}"` : ""}`;
  }
  fillRect(x: number, y: number, w: number, h: number): void {
    this.put("rect", `x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" fill="${this.paint(this.fillStyle)}"`);
  }
  strokeRect(x: number, y: number, w: number, h: number): void {
    this.put("rect", `x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" ${this.stroked()}`);
  }
  fillText(text: string, x: number, y: number): void {
    const [size, ...family] = this.font.split(" ");
    this.put("text", `x="${short(x)}" y="${short(y)}" font-size="${size}" font-family="${escaped(family.join(" "))}" fill="${this.paint(this.fillStyle)}" xml:space="preserve"`, escaped(text));
  }
  measureText(text: string): TextMetrics {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }
  beginPath(): void {
    this.path = [];
  }
  moveTo(x: number, y: number): void {
    this.path.push(`M${short(x)} ${short(y)}`);
  }
  lineTo(x: number, y: number): void {
    this.path.push(`L${short(x)} ${short(y)}`);
  }
  bezierCurveTo(...at: number[]): void {
    this.path.push(`C${at.map(short).join(" ")}`);
  }
  // Of arcs the panes have upper halves alone.
  arc(x: number, y: number, r: number): void {
    this.path.push(`M${short(x - r)} ${short(y)}A${short(r)} ${short(r)} 0 0 1 ${short(x + r)} ${short(y)}`);
  }
  closePath(): void {
    this.path.push("Z");
  }
  stroke(): void {
    this.put("path", `d="${this.path.join("")}" ${this.stroked()}`);
  }
  fill(): void {
    this.put("path", `d="${this.path.join("")}" fill="${this.paint(this.fillStyle)}"`);
  }
  setLineDash(dash: number[]): void {
    this.dash = dash.join(" ");
  }
  setTransform(): void {}

  document(width: number, height: number, title: string): string {
    const line = this.isDark ? "#fff" : "#000";
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><title>${escaped(title)}</title><defs><pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse"><path d="M0 8L8 0M-4 4L4 -4M4 12L12 4" stroke="${line}" stroke-opacity=".2"/></pattern></defs>${this.parts.join("\n")}</svg>\n`;
  }
}
