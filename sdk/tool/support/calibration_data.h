// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/literal.h"

namespace collet::tool {

/// A parameter of the program that takes the data.
struct DataParameter {
  std::string name;  ///< of the instruction; empty: unknown
  hlo::Shape shape;
};

/// Data for several runs of a program.
struct CalibrationData {
  std::vector<std::vector<hlo::Literal>> batches;  ///< each has a literal for each parameter
  std::vector<bool> same;                          ///< by parameter: all batches have one value
  std::vector<std::string> notes;                  ///< what was left out
};

/// Reads data for several runs. A word is `random:SEED` or `rule`, as of --inputs; a file of numpy.savez, whose arrays have the names or numbers of
/// parameters; a file of numpy.save, for a program of one parameter; or a folder of these, and of folders with one file (of
/// numpy.save, or raw) for each parameter, in the order of their names. An array of several times a parameter's shape, along a
/// dimension in front or along its first one, is as many batches. Errors name the file, the parameter, and the shape that is there
/// and the one that is needed; NaN and infinities are errors.
Expected<CalibrationData> read_calibration_data(const std::vector<std::string>& words, const std::string& program,
                                                const std::vector<DataParameter>& parameters);

}  // namespace collet::tool
