"""Messages between workers: headers, payloads, descriptions of models, and what is refused."""
