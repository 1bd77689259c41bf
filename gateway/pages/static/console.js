// SPDX-License-Identifier: Apache-2.0
// The page "now" moves. Its part is made by the console, which escapes what strangers have written.
'use strict';
const live = document.getElementById('live');
if (live) {
  const events = new EventSource(live.dataset.from);
  events.onmessage = (event) => {
    // A button that has the focus would lose it.
    if (!live.contains(document.activeElement)) live.innerHTML = JSON.parse(event.data);
  };
}
