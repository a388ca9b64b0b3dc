// The versions that are published, each with its folder, relative to that of this one. This file alone is replaced in the earlier ones.
const VERSIONS = [{ name: "this version", folder: "" }];

document.addEventListener("DOMContentLoaded", () => {
  for (const switcher of document.querySelectorAll("details.versions")) {
    for (const { name, folder } of VERSIONS) {
      const link = document.createElement("a");
      link.href = `${switcher.dataset.root}${folder}index.html`;
      link.textContent = folder ? name : `${switcher.dataset.version} (${name})`;
      const item = document.createElement("li");
      item.append(link);
      switcher.querySelector("ul").append(item);
    }
    document.addEventListener("click", (event) => {
      if (!switcher.contains(event.target)) switcher.open = false;
    });
  }
});
