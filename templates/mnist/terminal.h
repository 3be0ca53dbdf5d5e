// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mnist {

// A progress bar on stderr. On a terminal one line is redrawn; otherwise a line is printed from time to time, or
// nothing if quiet.
class Progress {
 public:
  Progress(std::string title, size_t total, bool quiet);
  ~Progress();
  // `note` is printed after the bar.
  void show(size_t done, const std::string& note);

 private:
  std::string title_;
  size_t total_;
  bool quiet_, terminal_;
  size_t shown_ = 0;
  double next_ = 0;
};

// Returns a curve as text, with its largest and smallest value at the side; drawn with blocks if the terminal supports
// UTF-8, else with ASCII.
std::string draw_curve(const std::vector<double>& values, size_t width, size_t height, bool utf8);

// True if the environment says that the terminal supports UTF-8.
bool speaks_utf8();

}  // namespace mnist
