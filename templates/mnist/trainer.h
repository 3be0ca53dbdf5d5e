// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "digits.h"

namespace mnist {

// Owners of objects of the library.
using Client = std::unique_ptr<collet_client, void (*)(collet_client*)>;
using Module = std::unique_ptr<collet_module, void (*)(collet_module*)>;
using Executable = std::unique_ptr<collet_executable, void (*)(collet_executable*)>;
using Buffer = std::unique_ptr<collet_buffer, void (*)(collet_buffer*)>;
using Blob = std::unique_ptr<collet_blob, void (*)(collet_blob*)>;

// A backend by name or path (empty for the default), and the options for opening it.
struct Choice {
  std::string backend;
  std::vector<std::pair<std::string, std::string>> options;
};

// Softmax regression on one backend: a program for a step, one for the accuracy, and the parameters on the device.
class Trainer {
 public:
  // `folder` contains train.hlo and accuracy.hlo; empty for the built-in ones. The images of `train` are copied to the
  // device, batch by batch. Throws std::runtime_error.
  Trainer(const Choice& choice, const std::string& folder, const Digits& train, size_t batch, double rate);

  // Starts one step on the next batch. The step may not have ended when this returns.
  void step();
  // Returns the losses of all steps so far, after waiting for them.
  const std::vector<double>& losses();
  // Returns the share of correct answers over the first multiple of 1,000 images of `test`.
  double accuracy(const Digits& test);

  // Returns facts of the compiled step, such as how many ops the device and the fallback run.
  collet_executable_facts facts() const;
  // Returns the names of the backend and of its fallback.
  collet_client_info info() const;
  // Returns the execution plan as text.
  std::string explain() const;

 private:
  static constexpr size_t kTestBatch = 1000;

  Executable compile(const std::string& name, const char* built_in, size_t batch);
  Buffer upload(uint32_t element, const std::vector<int64_t>& dims, const void* data);
  Buffer upload_images(const Digits& digits, size_t first, size_t count);
  Buffer upload_labels(const Digits& digits, size_t first, size_t count);
  double read_scalar(collet_buffer* buffer);

  std::string folder_;
  Client client_;
  Executable step_, accuracy_;
  Buffer weights_, bias_, rate_;
  std::vector<Buffer> images_, labels_;  // one per batch
  size_t steps_ = 0;
  std::vector<Buffer> pending_;  // losses on the device
  std::vector<double> losses_;
};

}  // namespace mnist
