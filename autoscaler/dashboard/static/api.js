// What the page asks of the controller. Addresses are relative, so the page may live below any path.

async function fetchJson(address) {
  const response = await fetch(address, { cache: "no-store" });
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  return response.json();
}

export function fetchFleet() {
  return fetchJson("api/fleet");
}

export function fetchPool(namespace, name, sinceSeconds) {
  const path = `api/pools/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  return fetchJson(`${path}?since=${sinceSeconds}`);
}
