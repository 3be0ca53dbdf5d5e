// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mnist {

// A progress bar on stderr. On a terminal one line that is drawn anew; elsewhere a line now and then, or nothing if quiet.
class Progress {
 public:
  Progress(std::string title, size_t total, bool quiet);
  ~Progress();
  // `note` stands behind the bar.
  void show(size_t done, const std::string& note);

 private:
  std::string title_;
  size_t total_;
  bool quiet_, terminal_;
  size_t shown_ = 0;
  double next_ = 0;
};

// A curve as text, with its largest and smallest value at the side; blocks where the terminal speaks UTF-8, else ASCII.
std::string draw_curve(const std::vector<double>& values, size_t width, size_t height, bool utf8);

// Does the environment say that the terminal speaks UTF-8?
bool speaks_utf8();

}  // namespace mnist
