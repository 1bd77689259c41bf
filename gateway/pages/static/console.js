// SPDX-License-Identifier: Apache-2.0
// The page "now" moves. Its part is made by the console, which escapes what strangers have written.
'use strict';
const live = document.getElementById('live');
if (live) {
  const events = new EventSource(live.dataset.from);
  const tables = () => [...live.querySelectorAll('.wide')];
  events.onmessage = (event) => {
    const before = tables(), places = before.map((one) => one.scrollLeft);
    const focus = before.indexOf(document.activeElement);
    // A button that has the focus would lose it.
    if (focus < 0 && live.contains(document.activeElement)) return;
    live.innerHTML = JSON.parse(event.data);
    tables().forEach((one, i) => { one.scrollLeft = places[i] || 0; });
    if (focus >= 0) tables()[focus]?.focus();
  };
}
