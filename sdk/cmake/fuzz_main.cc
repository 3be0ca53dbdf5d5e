// SPDX-License-Identifier: Apache-2.0

// Calls LLVMFuzzerTestOneInput if libFuzzer is not available (with gcc): replays files and folders, then runs random
// mutations of them. It takes libFuzzer's options of the same names: -runs=N -seed=S -max_len=L -artifact_prefix=P. It
// has no coverage feedback; it is a net under every build, not a replacement.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

// The input that is being run. The signal handler writes it to a file.
const Bytes* running = nullptr;
char artifact[4096];

void save_and_die(int signal_number) {
  const char message[] = "\nfuzz: crash; input kept in ";
  int fd = open(artifact, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ssize_t done = 0;
  if (fd >= 0 && running != nullptr) done += write(fd, running->data(), running->size());
  done += write(2, message, sizeof message - 1);
  done += write(2, artifact, std::strlen(artifact));
  done += write(2, "\n", 1);
  (void)done;
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void run(const Bytes& input) {
  running = &input;
  // An exact copy on the heap, so that a sanitizer sees the first byte beyond the end.
  auto* copy = static_cast<std::uint8_t*>(std::malloc(std::max<std::size_t>(input.size(), 1)));
  if (!input.empty()) std::memcpy(copy, input.data(), input.size());
  LLVMFuzzerTestOneInput(copy, input.size());
  std::free(copy);
  running = nullptr;
}

class Mutator {
 public:
  Mutator(const std::vector<Bytes>& seeds, std::uint64_t seed, std::size_t max_len)
      : seeds_(seeds), random_(seed), max_len_(max_len) {}

  Bytes next() {
    Bytes input = seeds_[below(seeds_.size())];
    if (input.size() > max_len_) {  // a random window of a large seed, sometimes its beginning
      std::size_t begin = below(3) == 0 ? 0 : below(input.size() - max_len_ + 1);
      input = Bytes(input.begin() + static_cast<std::ptrdiff_t>(begin),
                    input.begin() + static_cast<std::ptrdiff_t>(begin + max_len_));
    }
    for (std::size_t n = 1 + below(4); n > 0; --n) mutate(input);
    if (input.size() > max_len_) input.resize(max_len_);
    return input;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }
  static std::ptrdiff_t at(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }

  void mutate(Bytes& b) {
    const std::size_t position = below(b.size() + 1);
    const std::size_t length = std::min(b.size() - position, 1 + below(16));
    switch (below(9)) {
      case 0:  // flip one bit
        if (position < b.size()) b[position] ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:  // change one byte
        if (position < b.size()) b[position] = static_cast<std::uint8_t>(random_());
        break;
      case 2:
        b.resize(position);
        break;
      case 3:
        b.erase(b.begin() + at(position), b.begin() + at(position + length));
        break;
      case 4: {  // repeat a part
        Bytes piece(b.begin() + at(position), b.begin() + at(position + length));
        b.insert(b.begin() + at(below(b.size() + 1)), piece.begin(), piece.end());
        break;
      }
      case 5: {  // insert a part of another seed
        const Bytes& other = seeds_[below(seeds_.size())];
        const std::size_t from = below(other.size());
        const std::size_t count = std::min(other.size() - from, 1 + below(64));
        b.insert(b.begin() + at(position), other.begin() + at(from), other.begin() + at(from + count));
        break;
      }
      case 6: {  // write an extreme number
        static const char* const edges[] = {
            "0",     "-1", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "4294967296",
            "1e999", "nan"};
        std::string_view text = edges[below(std::size(edges))];
        b.insert(b.begin() + at(position), text.begin(), text.end());
        break;
      }
      case 7: {  // write a character of syntax
        static const char marks[] = "{}()[]<>,=:;%/*\"\\\n\t -";
        b.insert(b.begin() + at(position), static_cast<std::uint8_t>(marks[below(sizeof marks - 1)]));
        break;
      }
      default:  // insert a random byte
        b.insert(b.begin() + at(position), static_cast<std::uint8_t>(random_()));
        break;
    }
  }

  const std::vector<Bytes>& seeds_;
  std::mt19937_64 random_;
  std::size_t max_len_;
};

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t runs = 1000, seed = 1, max_len = 4096;
  std::string prefix = "./";
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    auto value = [&](std::string_view name, std::uint64_t& out) {
      if (!arg.starts_with(name)) return false;
      out = std::strtoull(argv[i] + name.size(), nullptr, 10);
      return true;
    };
    if (value("-runs=", runs) || value("-seed=", seed) || value("-max_len=", max_len)) continue;
    if (arg.starts_with("-artifact_prefix=")) {
      prefix = arg.substr(std::strlen("-artifact_prefix="));
    } else if (arg.starts_with("-")) {
      continue;  // an option of libFuzzer that this program does not have
    } else if (std::filesystem::is_directory(argv[i])) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i]))
        if (entry.is_regular_file()) files.push_back(entry.path());
    } else {
      files.emplace_back(argv[i]);
    }
  }
  std::sort(files.begin(), files.end());
  std::snprintf(artifact, sizeof artifact, "%scrash-%llu", prefix.c_str(), static_cast<unsigned long long>(getpid()));
  for (int s : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) signal(s, save_and_die);

  std::vector<Bytes> seeds;
  for (const auto& file : files) {
    seeds.push_back(read_file(file));
    run(seeds.back());
  }
  if (seeds.empty()) seeds.emplace_back();
  Mutator mutator(seeds, seed, max_len);
  for (std::uint64_t i = 0; i < runs; ++i) run(mutator.next());
  std::printf("%zu files replayed, %llu mutations run\n", files.size(), static_cast<unsigned long long>(runs));
  return 0;
}
