"""What swell.torch and swell.jax share: the pattern of A, the options, and solves with A and Aᴴ by one setup."""
