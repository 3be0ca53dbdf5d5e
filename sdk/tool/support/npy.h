// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/literal.h"

/// \file
/// Arrays in the files that numpy.save and numpy.savez write.

namespace collet::tool {

/// Reads a file of numpy.save: an array of booleans, integers, floats or complex numbers, little-endian. Arrays in Fortran's
/// order are brought into row-major order.
Expected<hlo::Literal> read_npy(std::string_view bytes);

/// Reads a file of numpy.savez: names and arrays in the order of the file. Compressed files are an error that says so.
Expected<std::vector<std::pair<std::string, hlo::Literal>>> read_npz(std::string_view bytes);

/// Returns one array for each parameter: the one that has its name, or its number i, as `i`, `argi` or `arr_i`. If no
/// array has any of these names, and there are as many as parameters, they are taken in their order. `parameters` are
/// the names of the parameters; an empty one is unknown.
Expected<std::vector<hlo::Literal>> in_order_of_parameters(std::vector<std::pair<std::string, hlo::Literal>> arrays,
                                                           const std::vector<std::string>& parameters);

/// Returns the array with the shape and element type that a parameter has. Floats are rounded to other floats, and integers
/// become integers of other sizes if all of them fit. INVALID_ARGUMENT if the dimensions or kinds of types differ: it says
/// what is there and what is needed.
Expected<hlo::Literal> as_argument(const hlo::Literal& array, const hlo::Shape& parameter);

}  // namespace collet::tool
