// Tables whose rows are made twice, because they are too many to be kept, against the same rows that are kept: on a
// terminal that is wide enough, and folded on a narrow one.
#include "tools/render/text_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include "core/base/int.h"
#include "core/base/text.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace text_table_test {

constexpr i64 kKept = 1 << 17;  // lines, the one with the titles too

// The text that write(Output&) puts on a terminal of so many columns.
template <typename Write>
std::string on_terminal(int columns, Write&& write) {
  const int screen = ::posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_TRUE(screen >= 0 && ::grantpt(screen) == 0 && ::unlockpt(screen) == 0);
  const int terminal = ::open(::ptsname(screen), O_RDWR | O_NOCTTY);
  EXPECT_GE(terminal, 0);
  termios mode{};
  ::tcgetattr(terminal, &mode);
  ::cfmakeraw(&mode);
  ::tcsetattr(terminal, TCSANOW, &mode);
  const winsize size{
      .ws_row = 24, .ws_col = static_cast<unsigned short>(columns), .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(terminal, TIOCSWINSZ, &size);
  std::fflush(stdout);
  const int before = ::dup(STDOUT_FILENO);
  ::dup2(terminal, STDOUT_FILENO);
  ::close(terminal);
  std::string text;
  // Ends with the last descriptor of the terminal.
  std::thread reader([&] {
    char some[4096];
    for (ssize_t n; (n = ::read(screen, some, sizeof some)) > 0;)
      text.append(some, static_cast<std::size_t>(n));
  });
  GlobalFlags flags;
  flags.color = When::kNever;
  Output out(flags);
  EXPECT_EQ(out.width(), columns);
  write(out);
  out.flush();
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  reader.join();
  ::close(screen);
  return text;
}

TextTable table_of_four() {
  return TextTable({{"name", Align::kLeft},
                    {"items", Align::kRight},
                    {"odd", Align::kLeft, true},
                    {"note", Align::kLeft}});
}

// The first row has the largest number, the last one the longest name, and the only cell of a column.
void add_rows(TextTable& table, i64 rows) {
  for (i64 r = 0; r < rows; r++) {
    const bool last = r + 1 == rows;
    table.row({last ? "layers.the_longest_name.weight" : cat("layers.", r),
               r == 0 ? "123,456,789" : cat(r % 10), last ? "here and nowhere else" : "", ""});
  }
}

void expect_same(const std::string& found, const std::string& expected) {
  const auto [f, e] = std::ranges::mismatch(found, expected);
  const std::size_t at = static_cast<std::size_t>(f - found.begin());
  EXPECT_TRUE(found == expected) << "at " << at << " of " << expected.size() << " bytes, found:\n"
                                 << found.substr(at - std::min<std::size_t>(at, 80), 160) << "\nexpected:\n"
                                 << expected.substr(at - std::min<std::size_t>(at, 80), 160);
}

void expect_same_made_twice(int columns, i64 rows) {
  SCOPED_TRACE(cat(rows, " rows on ", columns, " columns"));
  const std::string expected = on_terminal(columns, [&](Output& out) {
    TextTable table = table_of_four();
    add_rows(table, rows);
    table.write(out);
  });
  int makes = 0;
  const std::string found = on_terminal(columns, [&](Output& out) {
    TextTable table = table_of_four();
    table.write_made(out, [&] {
      makes++;
      add_rows(table, rows);
    });
  });
  EXPECT_EQ(makes, rows < kKept ? 1 : 2);
  expect_same(found, expected);
  EXPECT_GE(std::ranges::count(expected, '\n'), rows + 1);
}

TEST(TextTable, HasTheSameTextWhereRowsAreMadeTwice) {
  for (i64 rows : {kKept - 1, kKept, 2 * kKept + 1}) expect_same_made_twice(80, rows);
}

// The sentences are broken; long names have a line of their own; columns are stacked.
TEST(TextTable, IsFoldedTheSameWhereRowsAreMadeTwice) {
  for (int columns : {65, 52, 40}) expect_same_made_twice(columns, kKept + 1);
}

}  // namespace text_table_test
}  // namespace mckpt::impl
