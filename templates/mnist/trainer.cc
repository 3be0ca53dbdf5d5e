// SPDX-License-Identifier: Apache-2.0
#include "trainer.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "programs.h"

namespace mnist {

namespace {

// The batch size for which the modules are written.
const char kBatchInFile[] = "100";

void check(collet_status status, const collet_error& error) {
  if (status != COLLET_OK) throw std::runtime_error(error.message);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the module for another batch size, by replacing [100, [100] and constant(100).
std::string with_batch(std::string text, size_t batch) {
  const std::string wanted = std::to_string(batch);
  for (const char* before : {"[", "("}) {
    for (const char* after : {",", "]", ")"}) {
      const std::string old = std::string(before) + kBatchInFile + after, made = before + wanted + after;
      for (size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += made.size()) {
        text.replace(at, old.size(), made);
      }
    }
  }
  return text;
}

Client open_client(const Choice& choice) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : choice.options) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  collet_client_options options;
  std::memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.backend = choice.backend.empty() ? nullptr : choice.backend.c_str();
  options.keys = keys.data();
  options.values = values.data();
  options.pairs = static_cast<uint32_t>(keys.size());
  collet_client* client = nullptr;
  collet_error error;
  check(collet_client_open(&options, &client, &error), error);
  return {client, collet_client_close};
}

}  // namespace

Trainer::Trainer(const Choice& choice, const std::string& folder, const Digits& train, size_t batch, double rate)
    : folder_(folder),
      client_(open_client(choice)),
      step_(compile("train.hlo", kTrainProgram, batch)),
      accuracy_(nullptr, collet_executable_release),
      weights_(nullptr, collet_buffer_release),
      bias_(nullptr, collet_buffer_release),
      rate_(nullptr, collet_buffer_release) {
  if (train.size() < batch) throw std::runtime_error("there are fewer images than a batch has");
  const std::vector<float> zeros(Digits::kPixels * 10, 0.0f);
  const auto float_rate = static_cast<float>(rate);
  weights_ = upload(COLLET_TYPE_F32, {Digits::kPixels, 10}, zeros.data());
  bias_ = upload(COLLET_TYPE_F32, {10}, zeros.data());
  rate_ = upload(COLLET_TYPE_F32, {}, &float_rate);
  for (size_t first = 0; first + batch <= train.size(); first += batch) {
    images_.push_back(upload_images(train, first, batch));
    labels_.push_back(upload_labels(train, first, batch));
  }
}

void Trainer::step() {
  const size_t batch = steps_++ % images_.size();
  collet_buffer* arguments[] = {weights_.get(), bias_.get(), images_[batch].get(), labels_[batch].get(), rate_.get()};
  collet_buffer* results[3] = {};
  collet_error error;
  check(collet_execute(step_.get(), nullptr, arguments, results, &error), error);
  weights_.reset(results[0]);  // the old parameters were donated, so their memory holds the new ones
  bias_.reset(results[1]);
  pending_.emplace_back(results[2], collet_buffer_release);
}

const std::vector<double>& Trainer::losses() {
  for (const Buffer& loss : pending_) losses_.push_back(read_scalar(loss.get()));
  pending_.clear();
  return losses_;
}

double Trainer::accuracy(const Digits& test) {
  if (test.size() < kTestBatch) throw std::runtime_error("fewer than 1,000 images to test with");
  if (!accuracy_) accuracy_ = compile("accuracy.hlo", kAccuracyProgram, 0);
  double sum = 0;
  size_t batches = 0;
  for (size_t first = 0; first + kTestBatch <= test.size(); first += kTestBatch, ++batches) {
    const Buffer images = upload_images(test, first, kTestBatch), labels = upload_labels(test, first, kTestBatch);
    collet_buffer* arguments[] = {weights_.get(), bias_.get(), images.get(), labels.get()};
    collet_buffer* result = nullptr;
    collet_error error;
    check(collet_execute(accuracy_.get(), nullptr, arguments, &result, &error), error);
    const Buffer share(result, collet_buffer_release);
    sum += read_scalar(share.get());
  }
  return sum / static_cast<double>(batches);
}

collet_executable_facts Trainer::facts() const {
  collet_executable_facts facts;
  std::memset(&facts, 0, sizeof facts);
  facts.struct_size = sizeof facts;
  collet_error error;
  check(collet_executable_facts_get(step_.get(), &facts, &error), error);
  return facts;
}

collet_client_info Trainer::info() const {
  collet_client_info info;
  std::memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  collet_error error;
  check(collet_client_info_get(client_.get(), &info, &error), error);
  return info;
}

std::string Trainer::explain() const {
  collet_blob* text = nullptr;
  collet_error error;
  check(collet_executable_explain(step_.get(), 0, &text, &error), error);
  const Blob blob(text, collet_blob_release);
  return {collet_blob_data(text), collet_blob_size(text)};
}

Executable Trainer::compile(const std::string& name, const char* built_in, size_t batch) {
  const std::string path = folder_.empty() ? name : folder_ + "/" + name;
  std::string text = folder_.empty() ? built_in : read_text(path);
  if (batch != 0) text = with_batch(std::move(text), batch);
  collet_read_options options;
  std::memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.file = path.c_str();
  collet_module* module = nullptr;
  collet_error error;
  check(collet_module_read(text.data(), text.size(), &options, &module, nullptr, &error), error);
  const Module owned(module, collet_module_release);
  collet_executable* executable = nullptr;
  check(collet_compile(client_.get(), module, nullptr, &executable, &error), error);
  return {executable, collet_executable_release};
}

Buffer Trainer::upload(uint32_t element, const std::vector<int64_t>& dims, const void* data) {
  collet_host_array array;
  std::memset(&array, 0, sizeof array);
  array.struct_size = sizeof array;
  array.element = element;
  array.dims = dims.data();
  array.rank = static_cast<uint32_t>(dims.size());
  array.data = data;
  array.semantics = COLLET_HOST_COPIED;
  collet_buffer* buffer = nullptr;
  collet_error error;
  check(collet_buffer_from_host(client_.get(), 0, COLLET_NONE, &array, &buffer, &error), error);
  return {buffer, collet_buffer_release};
}

Buffer Trainer::upload_images(const Digits& digits, size_t first, size_t count) {
  std::vector<float> pixels(count * Digits::kPixels);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<float>(digits.pixels[first * Digits::kPixels + i]) / 255.0f;
  }
  return upload(COLLET_TYPE_F32, {static_cast<int64_t>(count), Digits::kPixels}, pixels.data());
}

Buffer Trainer::upload_labels(const Digits& digits, size_t first, size_t count) {
  const std::vector<int32_t> labels(digits.labels.begin() + static_cast<std::ptrdiff_t>(first),
                                    digits.labels.begin() + static_cast<std::ptrdiff_t>(first + count));
  return upload(COLLET_TYPE_S32, {static_cast<int64_t>(count)}, labels.data());
}

double Trainer::read_scalar(collet_buffer* buffer) {
  float value = 0;
  collet_error error;
  check(collet_buffer_to_host(buffer, &value, sizeof value, nullptr, &error), error);
  return value;
}

}  // namespace mnist
