/* A library that the program uses as an engine: calls a function of the program. */
void db_work(int count, void (*function)(void)) {
    for (int i = 0; i < count; i++) function();
}
