// Tests for breakdown on a GPU; breakdown.hpp has their text.
#pragma once
#include "scalar.cuh"
#include "breakdown.hpp"
