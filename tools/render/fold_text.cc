// Goes over a line word by word. Runs of blanks stay as they are, except where a line is broken.
#include "tools/render/fold_text.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

constexpr std::size_t kFarthestLabel = 24, kStep = 2;

// Columns of a text: the bytes that begin a character, without colour codes.
std::size_t columns(std::string_view text) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\x1b')
      i = std::min(text.find('m', i), text.size());
    else
      n += (text[i] & 0xc0) != 0x80;
  }
  return n;
}

// Calls fn(blanks before the word, word).
template <typename Fn>
void each_word(std::string_view line, Fn&& fn) {
  for (std::size_t at = 0; at < line.size();) {
    std::size_t begin = std::min(line.find_first_not_of(' ', at), line.size());
    std::size_t end = std::min(line.find(' ', begin), line.size());
    if (begin < end) fn(begin - at, line.substr(begin, end - begin));
    at = end;
  }
}

std::size_t hang_of(std::string_view line, std::size_t width) {
  std::size_t margin = std::min(line.find_first_not_of(' '), line.size());
  std::size_t hang = margin + kStep, column = 0, longest = 0;
  bool labelled = false;
  each_word(line, [&](std::size_t blanks, std::string_view word) {
    std::size_t size = columns(word);
    if (!labelled && column > 0 && blanks >= 2) {
      labelled = true;
      if (column + blanks <= std::min(kFarthestLabel, width / 2)) hang = column + blanks;
    }
    column += blanks + size;
    longest = std::max(longest, size);
  });
  // A text longer than the room there gets as much as there is.
  if (longest + hang > width) hang = std::min(hang, margin + kStep);
  return std::min(hang, width / 2);
}

}  // namespace

std::string folded_line(std::string_view line, std::size_t width, std::size_t hang) {
  std::string out;
  std::size_t column = 0;
  bool empty = true;  // nothing but blanks is on the present line
  each_word(line, [&](std::size_t blanks, std::string_view word) {
    std::size_t size = columns(word);
    if (!empty && column + blanks + size > width) {
      out += '\n';
      column = 0, blanks = hang;
    }
    out.append(blanks, ' ').append(word);
    column += blanks + size;
    empty = false;
  });
  return out;
}

std::string folded_text(std::string_view text, std::size_t width) {
  std::string out;
  while (!text.empty()) {
    std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.size() <= width || columns(line) <= width)
      out += line;
    else
      out += folded_line(line, width, hang_of(line, width));
    if (end == text.npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace mckpt::impl
