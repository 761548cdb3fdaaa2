// The judge on a GPU; judge.hpp has its text.
#pragma once
#include "context.cuh"
#include "judge.hpp"
