"""The advisor chooses method, preconditioner and format. Its files, in the order in which to read them:

- facts: formats/facts.py (the entries of A), definiteness.py (sentences on A), machine.py (the speed of this machine),
  costs.py (seconds of kernels), store.py (measurements on disk);
- predictions.py: the seconds of a choice before it is tried;
- choices.py and choose.py: the choices for a system, by predictions or by fixed rules;
- order.py: the order in which a solve tries them;
- watch.py: when a running attempt is left for another choice;
- attempts.py and several.py: the attempts of a solve, for one right-hand side or several;
- tuning.py: the fastest format, by timing products.
"""
