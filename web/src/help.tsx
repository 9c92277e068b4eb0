// SPDX-License-Identifier: MIT
// All keys, on '?'.
import { useEffect, useRef } from "preact/hooks";

export const helpKeys: [string, string][] = [
  ["?", "this help; Escape closes it"],
  ["1 … 9", "the panes, in the order of their tabs"],
  ["/", "search functions in all panes; /…/ is a regular expression; Enter and Shift+Enter go to the next and the last match"],
  ["arrow keys", "walk in the pane that has the focus"],
  ["Tab", "the next pane; lines between panes are moved by arrow keys"],
  ["Enter", "functions: locate in the call graph; flame graph: zoom into the box; call graph: show more callees"],
  ["h  z  i", "flame graph: the end of the hottest path; zoom to the selection; upside down"],
  ["a  v", "call graph: fit to view; the selected function as virtual root"],
  ["Backspace", "call graph: show fewer callees"],
  ["Escape", "flame graph: show all; search: end it"],
  ["+  -", "zoom (also Ctrl and the wheel)"],
  ["f  o  d", "focus, fold, drop the selected function"],
  ["r", "merge recursion"],
  ["u", "take the last transform back (so does the browser's back)"],
  ["m", "the next metric"],
  ["b", "two traces: difference, after, before"],
  ["t", "dark or light"],
  ["s", "save the picture of this pane as PNG"],
  ["c", "copy the selected function's name"],
];

export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" onClose={close} aria-label="Keys">
      <h2>Keys</h2>
      <table>
        <tbody>
          {helpKeys.map(([keys, does]) => (
            <tr key={keys}>
              <th scope="row">
                <kbd>{keys}</kbd>
              </th>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        Solid bars and boxes were measured by events and are exact; hatched ones are estimates by samples. Figures are those of <code>weir report --json</code>.
        {" "}Grey in the flame graph stands for boxes that are too narrow, with all they call: zoom in to see them.
        {" "}Of two traces, + and red is more than before, - and green less, = and grey the same.
      </p>
      <button onClick={() => dialog.current?.close()}>Close</button>
    </dialog>
  );
}
