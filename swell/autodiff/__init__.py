"""Common parts of swell.torch and swell.jax: the pattern of A, the options, and solves with A and Aᴴ by one setup."""
