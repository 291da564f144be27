// expected advice: leave
//
// Solves systems of equations by the method of conjugate gradients. A solution needs a few vectors
// and many multiplications, so no allocator can save time.
#include "known.hpp"

using numbers = std::vector<double>;

double product(const numbers& a, const numbers& b)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        sum += a[i] * b[i];
    return sum;
}

/// Multiplies by the matrix of a grid: subtracts from each point a part of its four neighbours.
numbers times_matrix(const numbers& x, std::size_t width)
{
    numbers y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        double around = 0;
        around += i >= width ? x[i - width] : 0;
        around += i + width < x.size() ? x[i + width] : 0;
        around += i % width > 0 ? x[i - 1] : 0;
        around += i % width < width - 1 ? x[i + 1] : 0;
        y[i] = 4.01 * x[i] - around;
    }
    return y;
}

numbers solve(const numbers& right, std::size_t width)
{
    numbers x(right.size()), rest = right, direction = right;
    double length = product(rest, rest);
    for (int step = 0; step < 200 && length > 1e-12; ++step) {
        numbers const ahead = times_matrix(direction, width);
        double const alpha = length / product(direction, ahead);
        for (std::size_t i = 0; i < x.size(); ++i) {
            x[i] += alpha * direction[i];
            rest[i] -= alpha * ahead[i];
        }
        double const next = product(rest, rest);
        for (std::size_t i = 0; i < x.size(); ++i)
            direction[i] = rest[i] + next / length * direction[i];
        length = next;
    }
    return x;
}

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 30);
    std::size_t const width = 100;
    known::random_numbers random(11);
    double sum = 0;
    for (int i = 0; i < rounds; ++i) {
        numbers right(width * width);
        for (double& one : right)
            one = random.below(1000);
        sum += solve(right, width)[width];
    }
    known::print(static_cast<std::uint64_t>(sum * 1000));
}
