// SPDX-License-Identifier: Apache-2.0
//
// Softmax regression on handwritten digits, through collet.h: the first program to run on a new backend.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "digits.h"
#include "terminal.h"
#include "trainer.h"

namespace {

const char kHelp[] =
    R"(mnist [options]: trains softmax regression on handwritten digits

  --backend B     name or path of a backend                        (cpu, or COLLET_BACKEND)
  --option K=V    for the backend, any number of times
  --steps N       training steps                                   (1000)
  --batch N       images in a step                                 (100)
  --rate R        learning rate                                    (0.5)
  --data DIR      IDX files, unpacked; without it digits are drawn
  --seed N        of the drawn digits                              (1)
  --check B       compare the first ten losses with another backend's, to 1e-5
  --losses FILE   compare the first losses with those in FILE, one a line, to 1e-5
  --write-data DIR    write the drawn digits as IDX files, and do no more
  --programs DIR  take train.hlo and accuracy.hlo from there       (those of the build)
  --explain       show what runs where
  --json FILE     write what was found; - is stdout, and then nothing else is
  --quiet         no progress
  -h, --help

Exit code: 0; 1 where a comparison fails or the run does; 2 for a wrong command line.
)";

constexpr double kTolerance = 1e-5;
constexpr size_t kTrain = 10000, kTest = 2000;

struct Options {
  mnist::Choice device;
  std::string data, check, losses, write_data, json, programs;
  size_t steps = 1000, batch = 100;
  double rate = 0.5;
  uint64_t seed = 1;
  bool explain = false, quiet = false;
};

[[noreturn]] void usage(const std::string& complaint) {
  std::cerr << "mnist: " << complaint << " (--help lists the options)\n";
  std::exit(2);
}

double number(const std::string& option, const std::string& text, double least) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !(value >= least) || value > 1e15) usage(option + ": '" + text + "' will not do");
  return value;
}

std::pair<std::string, std::string> pair(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) usage("--option takes KEY=VALUE, not '" + text + "'");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i], value;
    if (name == "-h" || name == "--help") {
      std::cout << kHelp;
      std::exit(0);
    }
    if (name == "--explain" || name == "--quiet") {
      (name == "--quiet" ? options.quiet : options.explain) = true;
      continue;
    }
    const size_t equals = name.find('=');
    if (equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (++i < argc) {
      value = argv[i];
    } else {
      usage(name + " is no option, or lacks its value");
    }
    if (name == "--backend")
      options.device.backend = value;
    else if (name == "--option")
      options.device.options.push_back(pair(value));
    else if (name == "--data")
      options.data = value;
    else if (name == "--check")
      options.check = value;
    else if (name == "--losses")
      options.losses = value;
    else if (name == "--write-data")
      options.write_data = value;
    else if (name == "--programs")
      options.programs = value;
    else if (name == "--json")
      options.json = value;
    else if (name == "--steps")
      options.steps = static_cast<size_t>(number(name, value, 1));
    else if (name == "--batch")
      options.batch = static_cast<size_t>(number(name, value, 1));
    else if (name == "--seed")
      options.seed = static_cast<uint64_t>(number(name, value, 0));
    else if (name == "--rate")
      options.rate = number(name, value, 0);
    else
      usage("what is " + name + "?");
  }
  return options;
}

struct Data {
  mnist::Digits train, test;
};

std::vector<std::string> idx_paths(const std::string& folder) {
  return {folder + "/train-images-idx3-ubyte", folder + "/train-labels-idx1-ubyte", folder + "/t10k-images-idx3-ubyte",
          folder + "/t10k-labels-idx1-ubyte"};
}

Data get_data(const Options& options) {
  if (options.data.empty()) {
    return {mnist::draw_digits(kTrain, options.seed), mnist::draw_digits(kTest, ~options.seed)};
  }
  const std::vector<std::string> paths = idx_paths(options.data);
  return {mnist::read_idx(paths[0], paths[1]), mnist::read_idx(paths[2], paths[3])};
}

// Prints the largest difference of `got` and `expected`. Returns true if it is within the tolerance.
bool compare(const std::vector<double>& got, const std::vector<double>& expected, const std::string& what, FILE* out) {
  const size_t count = std::min(got.size(), expected.size());
  double worst = 0;
  bool good = count > 0;
  for (size_t i = 0; i < count; ++i) {
    const double difference = std::fabs(got[i] - expected[i]);
    worst = std::max(worst, difference);
    if (!(difference <= kTolerance)) {
      std::fprintf(stderr, "mnist: loss %zu is %.9g, and %.9g by %s\n", i, got[i], expected[i], what.c_str());
      good = false;
    }
  }
  if (count == 0) std::fprintf(stderr, "mnist: no losses in %s\n", what.c_str());
  std::fprintf(out, "first %zu losses against %s: %s, largest difference %.2g\n", count, what.c_str(),
               good ? "equal" : "NOT EQUAL", worst);
  return good;
}

std::vector<double> read_losses(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<double> losses;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') losses.push_back(number(path, line, -1e15));
  }
  return losses;
}

void write_json(const Options& options, const mnist::Trainer& trainer, const std::vector<double>& losses,
                double accuracy, double seconds, bool good) {
  const collet_executable_facts facts = trainer.facts();
  std::string text = "{\"backend\": \"" + std::string(trainer.info().backend) + "\", \"fallback\": \"" +
                     std::string(trainer.info().fallback) + "\"";
  char line[512];
  std::snprintf(line, sizeof line,
                ", \"steps\": %zu, \"batch\": %zu, \"rate\": %g, \"seconds\": %.6f, \"steps_per_second\": %.1f, "
                "\"accuracy\": %.6f, \"device_ops\": %u, \"fallback_ops\": %u, \"crossing_bytes\": %llu, \"good\": %s, "
                "\"losses\": [",
                options.steps, options.batch, options.rate, seconds, static_cast<double>(options.steps) / seconds,
                accuracy, facts.device_ops, facts.fallback_ops, static_cast<unsigned long long>(facts.crossing_bytes),
                good ? "true" : "false");
  text += line;
  for (size_t i = 0; i < losses.size(); ++i) {
    std::snprintf(line, sizeof line, "%s%.9g", i == 0 ? "" : ", ", losses[i]);
    text += std::isfinite(losses[i]) ? line : i == 0 ? "null" : ", null";
  }
  text += "]}\n";
  if (options.json == "-") {
    std::cout << text << std::flush;
    return;
  }
  std::ofstream file(options.json);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + options.json);
}

std::string format(const char* form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

int run(const Options& options) {
  const Data data = get_data(options);
  if (!options.write_data.empty()) {
    const std::vector<std::string> paths = idx_paths(options.write_data);
    mnist::write_idx(data.train, paths[0], paths[1]);
    mnist::write_idx(data.test, paths[2], paths[3]);
    return 0;
  }
  FILE* const out = options.json == "-" ? stderr : stdout;
  mnist::Trainer trainer(options.device, options.programs, data.train, options.batch, options.rate);
  if (options.explain) std::fprintf(out, "%s\n", trainer.explain().c_str());
  const auto begin = std::chrono::steady_clock::now();
  {
    mnist::Progress progress("training on " + std::string(trainer.info().backend), options.steps, options.quiet);
    for (size_t step = 1; step <= options.steps; ++step) {
      trainer.step();
      if (step % 20 == 0 || step == options.steps)
        progress.show(step, "loss " + format("%.4f", trainer.losses().back()));
    }
  }
  const std::vector<double> losses = trainer.losses();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double accuracy = trainer.accuracy(data.test);
  std::fprintf(out, "%s", mnist::draw_curve(losses, 64, 8, mnist::speaks_utf8()).c_str());
  std::fprintf(out, "loss %.4f -> %.4f in %zu steps, %.0f steps a second; accuracy %.1f %%\n", losses.front(),
               losses.back(), losses.size(), static_cast<double>(losses.size()) / seconds, 100 * accuracy);
  const collet_executable_facts facts = trainer.facts();
  std::fprintf(out, "ops of a step: %u on %s, %u on the fallback\n", facts.device_ops, trainer.info().backend,
               facts.fallback_ops);
  bool good = std::isfinite(losses.back());
  if (!options.losses.empty()) good &= compare(losses, read_losses(options.losses), options.losses, out);
  if (!options.check.empty()) {
    mnist::Trainer other({options.check, {}}, options.programs, data.train, options.batch, options.rate);
    for (size_t step = 0; step < std::min<size_t>(10, options.steps); ++step) other.step();
    good &= compare(losses, other.losses(), other.info().backend, out);
  }
  if (!options.json.empty()) write_json(options, trainer, losses, accuracy, seconds, good);
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  try {
    return run(options);
  } catch (const std::exception& failure) {
    std::cerr << "mnist: " << failure.what() << "\n";
    return 1;
  }
}
