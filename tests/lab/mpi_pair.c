/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ranks of MPI that exchange a megabyte, some times, slowly enough for the kernel's list of queue pairs to be read.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXCHANGES      10
#define EXCHANGE_BYTES (1 << 20)

static char sent[EXCHANGE_BYTES];
static char received[EXCHANGE_BYTES];

int main(int argc, char **argv)
{
    int rank;
    int ranks_count;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_count);
    if (ranks_count != 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < EXCHANGES; i++) {
        memset(sent, rank + i, sizeof sent);
        MPI_Sendrecv(sent, EXCHANGE_BYTES, MPI_BYTE, 1 - rank, i, received, EXCHANGE_BYTES, MPI_BYTE, 1 - rank, i,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (received[0] != (char)(1 - rank + i) || received[EXCHANGE_BYTES - 1] != received[0])
            MPI_Abort(MPI_COMM_WORLD, 1);
        usleep(200000);
    }
    printf("rank %d: process %d exchanged %d times\n", rank, getpid(), EXCHANGES);
    MPI_Finalize();
    return 0;
}
